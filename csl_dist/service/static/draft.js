// A draft: edits of the labels that are not saved yet. Each function gives a new draft, or null if it
// makes no sense here. `runs` are those that the draft starts from: start, stop, class id.

import { withEdits } from "./decisions.js";

export const newDraft = (edits = []) => ({ edits, edge: null, span: null });

/** What a draft changes: spans with their new label, none of which has it already. */
export const draftEdits = (draft, runs, classes) => {
  const edits = [...draft.edits];
  if (draft.edge) edits.push(...edgeEdits(draft.edge, classes));
  if (draft.span) edits.push(draft.span);
  return withTimes(difference(runs, withEdits(runs, edits, classes), classes), edits);
};

/** Spans of `after` whose label is another one than in `before`. */
const difference = (before, after, classes) => {
  const spans = [];
  for (const [start, stop, label] of after) {
    for (const [a, b, old] of before) {
      const [first, last] = [Math.max(a, start), Math.min(b, stop)];
      if (first >= last || old === label) continue;
      const open = spans.at(-1);
      if (open?.stop === first && open.label === classes[label].name) open.stop = last;
      else spans.push({ start: first, stop: last, label: classes[label].name });
    }
  }
  return spans;
};

/** Spans with the exact times of those edges that were set between two frames. */
const withTimes = (spans, edits) => spans.map((span) => {
  const first = edits.findLast(({ start, start_seconds: at }) => start === span.start && at != null);
  const last = edits.findLast(({ stop, stop_seconds: at }) => stop === span.stop && at != null);
  const start = first && { start_seconds: first.start_seconds };
  const stop = last && { stop_seconds: last.stop_seconds };
  return { ...span, ...start, ...stop };
});

/** The edge between two runs that is nearest to a frame: where it is, and the classes beside it. */
export const nearestEdge = (runs, frame, within = Infinity) => {
  let best = null;
  for (let i = 1; i < runs.length; i++) {
    const at = runs[i][0];
    const far = Math.abs(at - frame);
    if (far <= within && (!best || far < Math.abs(best.from - frame))) {
      best = { from: at, to: at, left: runs[i - 1][2], right: runs[i][2], low: runs[i - 1][0] + 1, high: runs[i][1] - 1 };
    }
  }
  return best && best.low <= best.high ? { ...best, seconds: null } : null;
};

/** The edge at another place; it stays between the runs beside it. */
export const movedEdge = (edge, to, seconds = null) => {
  const at = Math.min(edge.high, Math.max(edge.low, to));
  return { ...edge, to: at, seconds: at === to ? seconds : null };
};

/** Frames between the old and the new place get the label of the run that grew. */
const edgeEdits = ({ from, to, left, right, seconds }, classes) => {
  if (from === to) return [];
  const [start, stop, label] = to < from ? [to, from, right] : [from, to, left];
  if (label < 0) return []; // an unlabelled stretch can't grow: labels are not taken away
  const exact = seconds == null ? {} : to < from ? { start_seconds: seconds } : { stop_seconds: seconds };
  return [{ start, stop, label: classes[label].name, ...exact }];
};

export const runAt = (runs, frame) => runs.find(([a, b]) => frame >= a && frame < b);

/** The frames of a run from a frame on get another label. */
export const split = (runs, frame, label) => {
  const run = runAt(runs, frame);
  return run && frame > run[0] ? [{ start: frame, stop: run[1], label }] : null;
};

/** The run at a frame becomes part of the one before it, or of the one after it. */
export const merge = (runs, frame, classes, isForward) => {
  const i = runs.findIndex(([a, b]) => frame >= a && frame < b);
  const into = runs[isForward ? i + 1 : i - 1] ?? runs[isForward ? i - 1 : i + 1];
  return into && into[2] >= 0 ? [{ start: runs[i][0], stop: runs[i][1], label: classes[into[2]].name }] : null;
};

/** The run at a frame and the one after it change places. */
export const swap = (runs, frame, classes) => {
  const i = runs.findIndex(([a, b]) => frame >= a && frame < b);
  const [first, second] = [runs[i], runs[i + 1]];
  if (!first || !second || first[2] < 0 || second[2] < 0) return null;
  const place = first[0] + (second[1] - second[0]);
  return [
    { start: first[0], stop: place, label: classes[second[2]].name },
    { start: place, stop: second[1], label: classes[first[2]].name },
  ];
};

export const runsAfter = (draft, runs, classes) => withEdits(runs, draftEdits(draft, runs, classes), classes);
