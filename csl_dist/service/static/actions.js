// Actions on the shown span: decide, undo, move a boundary.

import { addDecision, isAbout } from "./decisions.js";
import { LabelChooser } from "./dialogs.js";
import { $, showErrors, toast } from "./page.js";
import { showProgress } from "./panel.js";
import { draw, player, showPanel } from "./span.js";
import { enqueueOnSpan, state } from "./state.js";
import { clock, decisionWords } from "./text.js";
import { queue } from "./queue.js";

const newKey = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

/** Saves a decision and shows its effect. */
const save = async (flag, values) => {
  const { video, start, stop } = flag;
  const review = await state.api.decide({ key: newKey(), video, start, stop, reviewer: state.reviewer, ...values });
  showReviews([review]);
  showErrors(async () => showProgress(await state.api.progress()));
  return review;
};

/** Shows decisions in queue and panel; returns whether one is on the shown video. */
export const showReviews = (reviews) => {
  for (const review of reviews) {
    const isFlag = (flag) => isAbout(review, flag);
    queue.update(isFlag, (flag) => addDecision(flag, review));
    state.videoFlags.filter(isFlag).forEach((flag) => addDecision(flag, review));
  }
  if (state.flag) showPanel();
  return reviews.some((review) => review.video === state.flag?.video);
};

const ownDecision = (flag) => flag.reviews.find((review) => review.reviewer === state.reviewer);

export const decide = async (values) => {
  const { flag } = state;
  const earlier = ownDecision(flag);
  const review = await save(flag, { comment: $("comment").value.trim(), ...values });
  $("comment").value = "";
  state.undo.push({ flag, earlier });
  state.boundary = null;
  showPanel();
  toast(`${flag.video} ${clock(flag.start_seconds)}: ${decisionWords(review)}`);
  showErrors(draw);
};

/** Takes the last decision back; the decision before it counts again. */
export const undo = async () => {
  const { flag, earlier } = state.undo.at(-1) ?? { flag: state.flag };
  if (!state.undo.length && !ownDecision(flag)) return toast("There is nothing to undo.");
  const { decision, label, new_start, new_stop, comment } = earlier ?? { decision: "withdrawn" };
  await save(flag, { decision, label, new_start, new_stop, comment });
  state.undo.pop();
  const index = queue.indexOf(flag);
  if (index >= 0 && flag.rank !== state.flag.rank) await queue.select(index);
  toast(earlier ? `Back to: ${decisionWords(earlier)}` : "Decision withdrawn");
  showErrors(draw);
};

export const chooseLabel = (label) => {
  if (state.boundary) return changeBoundary({ label });
  return decide(label === state.flag.label ? { decision: "correct" } : { decision: "wrong", label });
};

export const labelChooser = new LabelChooser((label) => enqueueOnSpan(() => chooseLabel(label)));

/** Changes the boundary that is being moved; null discards it. */
export const changeBoundary = (change) => {
  state.boundary = change && { ...state.boundary, ...change };
  showPanel();
  showErrors(draw);
};

export const startBoundary = () => {
  const own = ownDecision(state.flag);
  changeBoundary({
    start: own?.new_start ?? state.flag.start,
    stop: own?.new_stop ?? state.flag.stop,
    label: own?.label ?? state.flag.suggested,
  });
};

export const moveBoundaryEdge = (edge) => {
  if (!state.boundary) startBoundary();
  if (edge === "start") changeBoundary({ start: Math.min(player.frame, state.boundary.stop - 1) });
  else changeBoundary({ stop: Math.max(player.frame + 1, state.boundary.start + 1) });
};

export const saveBoundary = () => {
  const { start, stop, label } = state.boundary;
  const isSame = start === state.flag.start && stop === state.flag.stop;
  return decide(isSame ? { decision: "wrong", label } : { decision: "boundary", label, new_start: start, new_stop: stop });
};
