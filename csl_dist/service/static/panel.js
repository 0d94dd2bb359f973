// The text around the picture and the timeline: the span, the decisions on it, and progress.

import { $ } from "./page.js";
import { ago, clock, decisionWords, element, percent, score, swatch } from "./text.js";

/** The classes, in the legend and in the filter. */
export const showClasses = (classes) => {
  $("filter-label").replaceChildren(element("option", { value: "" }, "any label"),
    ...classes.map(({ name }) => element("option", { value: name }, name)));
  $("legend").replaceChildren(...classes.map(({ name, colour }, i) =>
    element("span", {}, swatch(colour), i < 9 ? element("kbd", {}, `${i + 1}`) : "", name)));
};

/** Whether the fix gives the span one label; two steps that change places get two. */
export const hasOneLabel = (flag) => !flag.fix?.startsWith("swap");

export const showHeading = (flag, classColour) => {
  const frames = flag.stop - flag.start;
  $("span-title").replaceChildren(`${flag.video} `,
    element("small", {}, `${clock(flag.start_seconds)}–${clock(flag.stop_seconds)}, ${frames} frames, rank ${flag.rank} `),
    element("span", { class: `kind ${flag.kind}` }, flag.kind));
  $("span-title").dataset.rank = flag.rank;
  $("why").textContent = flag.why;
  $("annotated").replaceChildren(swatch(classColour(flag.label)), flag.label);
  $("suggested").replaceChildren(swatch(classColour(flag.suggested)), `${flag.suggested} `,
    element("span", { class: "soft" }, percent(flag.suggested_probability)));
  $("accept-text").textContent = `It is ${flag.suggested}`;
  $("accept").hidden = !hasOneLabel(flag);
};

/** Decisions of the reviewer and of others; `boundary` is one that is being moved, or null. */
export const showDecisions = (flag, reviewer, boundary) => {
  const own = flag.reviews.find((review) => review.reviewer === reviewer);
  const pressed = {
    accept: own?.decision === "wrong" && own.label === flag.suggested,
    correct: own?.decision === "correct",
    other: own?.decision === "wrong" && own.label !== flag.suggested,
    boundary: own?.decision === "boundary" || Boolean(boundary),
    unsure: own?.decision === "unsure",
  };
  for (const [id, value] of Object.entries(pressed)) $(id).setAttribute("aria-pressed", value);
  $("history").replaceChildren(...flag.reviews.map((review) =>
    element("li", {}, element("b", {}, review === own ? "you" : review.reviewer),
      `: ${decisionWords(review)} `, element("span", { class: "soft" }, ago(review.when)),
      review.comment ? `, “${review.comment}”` : "")));
  $("boundary-help").hidden = !boundary;
  if (!boundary) return;
  $("boundary-help").replaceChildren(`${boundary.label} from frame ${boundary.start} to ${boundary.stop - 1}. `,
    element("kbd", {}, "["), " ", element("kbd", {}, "]"),
    " set start and end to the cursor, a digit changes the label, ",
    element("kbd", {}, "Enter"), " saves it, ", element("kbd", {}, "Esc"), " discards it.");
};

/** The time, the frame and the class at the cursor; the class may be undefined. */
export const showCursorPlace = (seconds, frame, cls) => {
  $("clock").textContent = `${clock(seconds)} · frame ${frame}`;
  $("here").replaceChildren(...(cls ? [swatch(cls.colour), cls.name] : ["unlabelled"]));
};

/** The score of the span, before and after decisions. */
export const showChange = ({ before, after, threshold }, isEdited) => {
  const text = $("change");
  text.dataset.before = before;
  text.dataset.after = after;
  if (!isEdited || Math.abs(after - before) < 0.005) {
    text.replaceChildren("score ", element("b", {}, score(before)),
      element("span", { class: "soft" }, threshold == null ? "" : `, threshold ${score(threshold)}`));
    return;
  }
  const below = after <= threshold ? "below the threshold now" : `still above ${score(threshold)}`;
  text.replaceChildren("score ", score(before), " → ",
    element("b", { class: after < before ? "fell" : "rose" }, score(after)),
    element("span", { class: "soft" }, threshold == null ? "" : `, ${below}`));
};

export const showProgress = (progress) => {
  const share = (count) => `${(100 * count) / Math.max(1, progress.total)}%`;
  for (const name of ["wrong", "correct", "unsure"]) $("bar").querySelector(`.${name}`).style.width = share(progress[name]);
  $("bar").setAttribute("aria-valuemax", progress.total);
  $("bar").setAttribute("aria-valuenow", progress.decided);
  const parts = [element("b", {}, `${progress.decided} of ${progress.total}`), " reviewed"];
  if (progress.precision != null) {
    parts.push(" · ", element("b", {}, percent(progress.precision)),
      ` of flags were wrong labels (95 %: ${percent(progress.precision_low)} to ${percent(progress.precision_high)})`);
  }
  if (progress.unsure) parts.push(` · ${progress.unsure} unsure`);
  if (progress.disputed) parts.push(` · ${progress.disputed} disputed`);
  $("progress-text").replaceChildren(...parts);
};
