// What stands around the picture and the timeline: the span, what was decided on it, progress.

import { $ } from "./page.js";
import { ago, clock, decisionWords, element, percent, score, swatch } from "./text.js";

/** The classes as a legend, and to filter by. */
export const showClasses = (classes) => {
  $("filter-label").replaceChildren(element("option", { value: "" }, "any label"),
    ...classes.map(({ name }) => element("option", { value: name }, name)));
  $("legend").replaceChildren(...classes.map(({ name, colour }, i) =>
    element("span", {}, swatch(colour), i < 9 ? element("kbd", {}, `${i + 1}`) : "", name)));
};

export const showHeading = (flag, colourOf) => {
  const frames = flag.stop - flag.start;
  $("span-title").replaceChildren(`${flag.video} `,
    element("small", {}, `${clock(flag.start_seconds)}–${clock(flag.stop_seconds)}, ${frames} frames, rank ${flag.rank} `),
    element("span", { class: `kind ${flag.kind}` }, flag.kind));
  $("span-title").dataset.rank = flag.rank;
  $("why").textContent = flag.why;
  $("annotated").replaceChildren(swatch(colourOf(flag.label)), flag.label);
  $("suggested").replaceChildren(swatch(colourOf(flag.suggested)), `${flag.suggested} `,
    element("span", { class: "soft" }, percent(flag.suggested_probability)));
  $("accept-text").textContent = `It is ${flag.suggested}`;
};

/** What a reviewer and others decided; `moved` is a boundary in the making, or null. */
export const showDecisions = (flag, reviewer, moved) => {
  const own = flag.reviews.find((review) => review.reviewer === reviewer);
  const pressed = {
    accept: own?.decision === "wrong" && own.label === flag.suggested,
    correct: own?.decision === "correct",
    other: own?.decision === "wrong" && own.label !== flag.suggested,
    boundary: own?.decision === "boundary" || Boolean(moved),
    unsure: own?.decision === "unsure",
  };
  for (const [id, value] of Object.entries(pressed)) $(id).setAttribute("aria-pressed", value);
  $("history").replaceChildren(...flag.reviews.map((review) =>
    element("li", {}, element("b", {}, review === own ? "you" : review.reviewer),
      `: ${decisionWords(review)} `, element("span", { class: "soft" }, ago(review.when)),
      review.comment ? `, “${review.comment}”` : "")));
  $("boundary-help").hidden = !moved;
  if (!moved) return;
  $("boundary-help").replaceChildren(`${moved.label} from frame ${moved.start} to ${moved.stop - 1}. `,
    element("kbd", {}, "["), " ", element("kbd", {}, "]"),
    " put start and end at the cursor, a digit changes the label, ",
    element("kbd", {}, "Enter"), " keeps it, ", element("kbd", {}, "Esc"), " drops it.");
};

/** Where the cursor is; `one` is the class there, or undefined. */
export const showPlace = (seconds, frame, one) => {
  $("clock").textContent = `${clock(seconds)} · frame ${frame}`;
  $("here").replaceChildren(...(one ? [swatch(one.colour), one.name] : ["unlabelled"]));
};

/** How decisions move the score of the span. */
export const showChange = ({ before, after, threshold }, isEdited) => {
  const place = $("change");
  place.dataset.before = before;
  place.dataset.after = after;
  if (!isEdited || Math.abs(after - before) < 0.005) {
    place.replaceChildren("score ", element("b", {}, score(before)),
      element("span", { class: "soft" }, `, threshold ${score(threshold)}`));
    return;
  }
  const below = after <= threshold ? "below the threshold now" : `still above ${score(threshold)}`;
  place.replaceChildren("score ", score(before), " → ",
    element("b", { class: after < before ? "fell" : "rose" }, score(after)),
    element("span", { class: "soft" }, `, ${below}`));
};

export const showProgress = (found) => {
  const share = (count) => `${(100 * count) / Math.max(1, found.total)}%`;
  for (const name of ["wrong", "correct", "unsure"]) $("bar").querySelector(`.${name}`).style.width = share(found[name]);
  $("bar").setAttribute("aria-valuemax", found.total);
  $("bar").setAttribute("aria-valuenow", found.decided);
  const parts = [element("b", {}, `${found.decided} of ${found.total}`), " reviewed"];
  if (found.precision != null) {
    parts.push(" · ", element("b", {}, percent(found.precision)),
      ` of flags were wrong labels (95 %: ${percent(found.precision_low)} to ${percent(found.precision_high)})`);
  }
  if (found.unsure) parts.push(` · ${found.unsure} unsure`);
  if (found.disputed) parts.push(` · ${found.disputed} disputed`);
  $("progress-text").replaceChildren(...parts);
};
