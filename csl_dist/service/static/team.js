// Who reviews what: the flags are dealt out, and everybody sees their own.

import { $, toast } from "./page.js";
import { state } from "./state.js";
import { element } from "./text.js";

export const showTeam = async () => {
  const { reviewers, by, double, counts, done } = await state.api.assignment();
  const progress = await state.api.progress();
  const names = [...new Set([...reviewers, ...Object.keys(progress.reviewers), state.reviewer])];
  $("team-names").value = (reviewers.length ? reviewers : names).join(", ");
  $("team-by").value = by ?? "share";
  $("team-double").value = Math.round(100 * double);
  $("team-table").replaceChildren(...names.map((name) => element("tr", {}, element("th", { scope: "row" }, name),
    element("td", {}, counts[name] ?? "–"), element("td", {}, done[name] ?? "–"), element("td", {}, progress.reviewers[name] ?? 0))));
  $("team-agreement").textContent = progress.pairs
    ? `Two people looked at the same span ${progress.pairs} times and said the same ${Math.round(100 * progress.agree)} % of them${progress.kappa == null ? "" : ` (kappa ${progress.kappa.toFixed(2)})`}.`
    : "Nobody has looked at a span of somebody else yet.";
  if (!$("team-dialog").open) $("team-dialog").showModal();
};

export const assign = async () => {
  const reviewers = $("team-names").value.split(",").map((name) => name.trim()).filter(Boolean);
  await state.api.assign({ reviewers, by: $("team-by").value, double: Number($("team-double").value) / 100 });
  toast("Assigned; everybody sees their own with “mine”");
  await showTeam();
};
