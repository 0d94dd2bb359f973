// Deciding on the span that is shown, and taking decisions back.

import { isOn, take } from "./decisions.js";
import { LabelChooser } from "./dialogs.js";
import { $, guarded, toast } from "./page.js";
import { showProgress } from "./panel.js";
import { draw, player, showPanel } from "./span.js";
import { act, state } from "./state.js";
import { clock, decisionWords } from "./text.js";
import { queue } from "./worklist.js";

const newKey = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

/** Puts a decision on record, and shows what comes of it. */
const record = async (flag, values) => {
  const { video, start, stop } = flag;
  const review = await state.api.decide({ key: newKey(), video, start, stop, reviewer: state.reviewer, ...values });
  apply([review]);
  guarded(async () => showProgress(await state.api.progress()));
  return review;
};

/** Makes decisions visible in queue and panel; whether they are on the video that is shown. */
export const apply = (reviews) => {
  for (const review of reviews) {
    const fits = (flag) => isOn(review, flag);
    queue.update(fits, (flag) => take(flag, review));
    state.videoFlags.filter(fits).forEach((flag) => take(flag, review));
  }
  if (state.flag) showPanel();
  return reviews.some((review) => review.video === state.flag?.video);
};

const mine = (flag) => flag.reviews.find((review) => review.reviewer === state.reviewer);

export const decide = async (values) => {
  const { flag } = state;
  const earlier = mine(flag);
  const review = await record(flag, { comment: $("comment").value.trim(), ...values });
  $("comment").value = "";
  state.undo.push({ flag, earlier });
  state.moved = null;
  showPanel();
  toast(`${flag.video} ${clock(flag.start_seconds)}: ${decisionWords(review)}`);
  guarded(draw);
};

/** Takes the last decision back: what held before holds again. */
export const undo = async () => {
  const { flag, earlier } = state.undo.at(-1) ?? { flag: state.flag };
  if (!state.undo.length && !mine(flag)) return toast("There is nothing to undo.");
  const { decision, label, new_start, new_stop, comment } = earlier ?? { decision: "withdrawn" };
  await record(flag, { decision, label, new_start, new_stop, comment });
  state.undo.pop();
  const index = queue.placeOf(flag);
  if (index >= 0 && flag.rank !== state.flag.rank) await queue.select(index);
  toast(earlier ? `Back to: ${decisionWords(earlier)}` : "Decision withdrawn");
  guarded(draw);
};

export const chooseLabel = (label) => {
  if (state.moved) return move({ label });
  return decide(label === state.flag.label ? { decision: "correct" } : { decision: "wrong", label });
};

export const chooser = new LabelChooser((label) => act(() => chooseLabel(label)));

/** Changes the boundary in the making; null drops it. */
export const move = (change) => {
  state.moved = change && { ...state.moved, ...change };
  showPanel();
  guarded(draw);
};

export const startMoving = () => {
  const own = mine(state.flag);
  move({
    start: own?.new_start ?? state.flag.start,
    stop: own?.new_stop ?? state.flag.stop,
    label: own?.label ?? state.flag.suggested,
  });
};

export const moveEdge = (edge) => {
  if (!state.moved) startMoving();
  if (edge === "start") move({ start: Math.min(player.frame, state.moved.stop - 1) });
  else move({ stop: Math.max(player.frame + 1, state.moved.start + 1) });
};

export const keepBoundary = () => {
  const { start, stop, label } = state.moved;
  const isSame = start === state.flag.start && stop === state.flag.stop;
  return decide(isSame ? { decision: "wrong", label } : { decision: "boundary", label, new_start: start, new_stop: stop });
};
