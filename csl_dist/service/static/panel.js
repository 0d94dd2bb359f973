// The text around the picture and the timeline: the span, the decisions on it, and progress.

import { $ } from "./page.js";
import { isFlag, orderedClasses, state } from "./state.js";
import { ago, clock, decisionWords, duration, element, fixWords, kindWords, likely, percent, score, swatch } from "./text.js";
import { spansText } from "./decisions.js";

const TYPICAL_WIDTH = 160;

const options = (select, any, values, words = (value) => value) => {
  select.replaceChildren(element("option", { value: "" }, any),
    ...values.map((value) => element("option", { value }, words(value))));
  select.hidden = !values.length;
};

/** The classes, in the legend and in the filters; what else can be chosen there. */
export const showFacts = (facts) => {
  const ordered = orderedClasses();
  options($("filter-label"), "any label", ordered.map(({ name }) => name));
  options($("filter-kind"), "any kind", facts.kinds, kindWords);
  options($("filter-annotator"), "any annotator", facts.annotators);
  options($("filter-procedure"), "any procedure", facts.procedures);
  $("source-sample").hidden = $("source-sample").disabled = !facts.num_sampled;
  $("legend").replaceChildren(...ordered.map(({ name, colour }, i) =>
    element("span", {}, swatch(colour), i < 9 ? element("kbd", {}, `${i + 1}`) : "", name)));
};

export const showHeading = (flag, proposal, classColour, secondsOf) => {
  const where = `${clock(flag.start_seconds)}–${clock(flag.stop_seconds)}, ${duration(flag.stop_seconds - flag.start_seconds)}`;
  $("span-title").replaceChildren(`${flag.video} `,
    element("small", {}, isFlag(flag) ? `${where}, rank ${flag.rank} ` : `${where} `),
    element("span", { class: `kind ${flag.kind}` }, kindWords(flag.kind)));
  $("span-title").dataset.rank = flag.rank;
  const sure = likely(flag);
  $("why").replaceChildren(...(sure == null ? [] : [element("b", {}, `${sure} likely an error. `)]), flag.why);
  $("annotated").replaceChildren(swatch(classColour(flag.label)), flag.label || "unlabelled");
  const hasOther = isFlag(flag) && flag.suggested !== flag.label;
  $("suggested-box").hidden = !hasOther;
  $("suggested-name").textContent = flag.fix?.startsWith("swap") ? "and after it" : "models say";
  $("suggested").replaceChildren(swatch(classColour(flag.suggested)), `${flag.suggested} `,
    element("span", { class: "soft" }, flag.suggested_probability == null ? "" : percent(flag.suggested_probability)));
  const words = fixWords(flag, proposal, secondsOf);
  $("accept").hidden = words == null;
  $("accept-text").textContent = words ?? "";
  $("similar").hidden = !isFlag(flag);
};

/** Decisions of the reviewer and of others; `edits` are those of a draft, or null. */
export const showDecisions = (flag, reviewer, proposal, edits) => {
  const own = flag.reviews.find((review) => review.reviewer === reviewer);
  const isAccepted = own?.edits?.length > 0 && spansText(own.edits) === spansText(proposal);
  const isOther = own?.edits?.length > 0 && !isAccepted;
  const pressed = {
    accept: isAccepted || own?.decision === "order",
    correct: own?.decision === "correct",
    other: isOther && own.decision === "wrong",
    boundary: (isOther && own.decision !== "wrong") || Boolean(edits),
    unsure: own?.decision === "unsure",
  };
  for (const [id, value] of Object.entries(pressed)) $(id).setAttribute("aria-pressed", value);
  $("history").replaceChildren(...flag.reviews.map((review) =>
    element("li", {}, element("b", {}, review === own ? "you" : review.reviewer),
      `: ${decisionWords(review)} `, element("span", { class: "soft" }, ago(review.when)),
      review.comment ? `, “${review.comment}”` : "")));
  $("draft").hidden = !edits;
  if (edits) showDraft(edits);
};

/** The key was understood; the decision stands there when it is saved. */
export const showSaving = () => $("history").prepend(element("li", { class: "soft saving" }, "saving…"));

const showDraft = (edits) => {
  const list = edits.map(({ start, stop, label, start_seconds: exactStart, stop_seconds: exactStop }) =>
    element("li", {}, `${label} from frame ${start} to ${stop - 1}`,
      exactStart != null || exactStop != null ? `, exactly ${clock(exactStart ?? exactStop, 2)}` : ""));
  $("draft-edits").replaceChildren(...(list.length ? list : [element("li", {}, "nothing changed yet")]));
  $("save-draft").disabled = !edits.length;
};

/** The time, the frame and the class at the cursor; the class may be undefined. */
export const showCursorPlace = (seconds, frame, cls) => {
  $("clock").textContent = `${clock(seconds, 2)} · frame ${frame}`;
  $("here").replaceChildren(...(cls ? [swatch(cls.colour), cls.name] : ["unlabelled"]));
};

let asked = 0;

/** What the sample says so far, in place of what the next flags are expected to bring. */
const showCertificate = async () => {
  const number = ++asked;
  const { sentence, judged } = await state.api.certificate();
  if (number !== asked) return; // a later answer has more decisions
  $("next-text").textContent = `Certificate: ${sentence}.`;
  $("next-text").dataset.judged = judged;
};

/** Names of the segments before and after the one at the cursor. */
export const showNeighbours = (before, after) => {
  $("neighbours").textContent = [before && `before: ${before}`, after && `next: ${after}`].filter(Boolean).join(" · ");
};

/** Frames of other videos that show what both labels usually look like. */
export const showTypical = async (flag, api) => {
  const labels = [...new Set([flag.label, flag.suggested])].filter(Boolean);
  if (!["video", "frames"].includes(state.video?.media)) {
    $("typical").hidden = true;
    return;
  }
  const found = await Promise.all(labels.map((label) => api.typical(label, flag.video)));
  if (state.flag !== flag) return;
  $("typical").hidden = !found.some((frames) => frames.length);
  $("typical-frames").replaceChildren(...labels.map((label, i) =>
    element("figure", {}, element("figcaption", {}, `${label} usually looks like this`),
      ...found[i].map(({ video, frame }) => element("img", {
        src: api.pictureUrl(video, frame, TYPICAL_WIDTH), alt: `${label} in ${video}`, title: `${video}, frame ${frame}`, loading: "lazy",
      })))));
};

/** The score of the span, before and after decisions or the fix that is proposed. */
export const showChange = ({ before, after, threshold }, isEdited, isProposed) => {
  const text = $("change");
  text.dataset.before = before;
  text.dataset.after = after;
  if (!isEdited || Math.abs(after - before) < 0.005) {
    text.replaceChildren("score ", element("b", {}, score(before)),
      element("span", { class: "soft" }, threshold == null ? "" : `, threshold ${score(threshold)}`));
    return;
  }
  const below = after <= threshold ? "below the threshold now" : `still above ${score(threshold)}`;
  const words = isProposed ? ", with the fix" : threshold == null ? "" : `, ${below}`;
  text.replaceChildren("score ", score(before), " → ",
    element("b", { class: after < before ? "fell" : "rose" }, score(after)),
    element("span", { class: "soft" }, words));
};

let newest = { api: null, last: 0 };

export const showProgress = (progress) => {
  // Answers may arrive in another order than requests were sent.
  if (newest.api === state.api && progress.last < newest.last) return null;
  newest = { api: state.api, last: progress.last };
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
  if (progress.missed) parts.push(` · ${progress.missed} found without a flag`);
  if (progress.pairs) parts.push(` · two reviewers agree on ${percent(progress.agree)} of ${progress.pairs}`);
  $("progress-text").replaceChildren(...parts);
  if ($("filter-source").value === "sample") return showCertificate();
  asked++;
  const { next_flags: next, next_errors: errors } = progress;
  const count = next === 1 ? "The next one is" : `Of the next ${next}`;
  $("next-text").textContent = !next ? "" : errors < 1
    ? (next === 1 ? `${count} expected to be right (${percent(1 - errors)})` : `The next ${next} are expected to hold less than one error`)
    : `${count} about ${errors.toFixed(errors < 3 ? 1 : 0)} expected to be wrong`;
  return null;
};

