// Actions on the shown span: decide, undo, and edit its labels.

import { addDecision, isAbout, spansText } from "./decisions.js";
import { LabelChooser } from "./dialogs.js";
import { draftEdits, merge, movedEdge, nearestEdge, newDraft, runAt, runsAfter, split, swap } from "./draft.js";
import { $, showErrors, toast } from "./page.js";
import { showProgress, showSaving } from "./panel.js";
import { baseRuns, currentEdits, draw, onEdgeDrag, player, showFlag, showPanel } from "./span.js";
import { enqueueOnSpan, isFlag, orderedClasses, proposalOf, state } from "./state.js";
import { clock, decisionWords } from "./text.js";
import { queue, showNextUndecided } from "./queue.js";

const SNAP_PIXELS = 8;

const newKey = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

/** Saves a decision and shows its effect. */
export const save = async (flag, values) => {
  const { video, start, stop } = flag;
  if (flag === state.flag) showSaving();
  let review;
  try {
    review = await state.api.decide({ key: newKey(), video, start, stop, reviewer: state.reviewer, ...values });
  } catch (error) {
    if (state.flag) showPanel();
    throw error;
  }
  showReviews([review]);
  showErrors(async () => showProgress(await state.api.progress()));
  return review;
};

/** Shows decisions in queue and panel; returns whether one is on the shown video. */
export const showReviews = (reviews) => {
  for (const review of reviews) {
    const isHere = (flag) => isAbout(review, flag);
    queue.update(isHere, (flag) => addDecision(flag, review));
    state.videoFlags.filter(isHere).forEach((flag) => addDecision(flag, review));
  }
  if (state.flag) showPanel();
  return reviews.some((review) => review.video === state.flag?.video);
};

const ownDecision = (flag) => flag.reviews.find((review) => review.reviewer === state.reviewer);

/** Saves a decision on the shown span; with Shift, the next open one is shown then. */
export const decide = async (values, event) => {
  const { flag } = state;
  const earlier = ownDecision(flag);
  const review = await save(flag, { comment: $("comment").value.trim(), ...values });
  $("comment").value = "";
  state.undo.push({ flag, earlier });
  state.draft = null;
  showPanel();
  toast(`${flag.video} ${clock(flag.start_seconds)}: ${decisionWords(review)}`);
  if (event?.shiftKey) await showNextUndecided();
  else showErrors(draw);
};

const plain = (edits) => edits.map((edit) => ({ ...edit }));

/** Accepts what the flag proposes. */
export const accept = (event) => {
  const { flag } = state;
  if (proposalOf(flag).length || flag.kind === "disorder") return decide({ accept: true }, event);
  return toast("This span has no proposal; choose a label with L or edit it.");
};

/** Takes the last decision back; the decision before it counts again. */
export const undo = async () => {
  const { flag, earlier } = state.undo.at(-1) ?? { flag: state.flag };
  if (!state.undo.length && !ownDecision(flag)) return toast("There is nothing to undo.");
  const { decision, label, new_start, new_stop, comment, edits } = earlier ?? { decision: "withdrawn" };
  await save(flag, { decision, label, new_start, new_stop, comment, ...(decision === "edited" ? { edits } : {}) });
  state.undo.pop();
  const index = queue.indexOf(flag);
  if (flag === state.flag) showErrors(draw);
  else await (index >= 0 ? queue.select(index) : showFlag(flag, -1));
  toast(earlier ? `Back to: ${decisionWords(earlier)}` : "Decision withdrawn");
};

export const chooseLabel = (label, event) => {
  if (state.draft?.span) return changeDraft({ span: { ...state.draft.span, label } });
  if (state.draft?.splitAt != null) {
    const edits = split(draftRuns(), state.draft.splitAt, label);
    return changeDraft({ edits: [...state.draft.edits, ...(edits ?? [])], splitAt: null });
  }
  return decide(label === state.flag.label ? { decision: "correct" } : { decision: "wrong", label }, event);
};

export const labelChooser = new LabelChooser((label) => enqueueOnSpan(() => chooseLabel(label)));

export const openChooser = () => labelChooser.open(orderedClasses(), state.flag);

// Drafts --------------------------------------------------------------------------------------

/** Changes the draft, and starts one if there is none; null discards it. */
export const changeDraft = (change) => {
  state.draft = change && { ...(state.draft ?? newDraft(startingEdits())), ...change };
  showPanel();
  showErrors(draw);
};

/** A draft goes on from one's own decision; without one, dragging starts from the fix that is shown. */
const startingEdits = () => {
  const own = ownDecision(state.flag);
  return own?.edits?.length ? plain(own.edits) : [];
};

const draftRuns = () => runsAfter(state.draft ?? newDraft(startingEdits()), baseRuns(), state.facts.classes);

/** The edge that is being moved becomes part of the edits. */
const settled = () => {
  if (!state.draft) return newDraft(startingEdits());
  return newDraft(draftEdits(state.draft, baseRuns(), state.facts.classes));
};

export const startSpan = () => {
  const [first] = proposalOf(state.flag);
  const span = { start: state.flag.start, stop: state.flag.stop, label: first?.label ?? state.flag.suggested };
  const own = ownDecision(state.flag)?.edits?.[0];
  changeDraft({ ...newDraft([]), span: own ? { ...own } : span });
};

/** Sets one end of the span to the cursor, to the exact time where the file is played. */
export const setSpanEnd = (end) => {
  if (!state.draft?.span) startSpan();
  const { span } = state.draft;
  const at = player.edgeFrameAt(player.seconds);
  const exact = isBetweenFrames(at, player.seconds) ? player.seconds : undefined;
  if (end === "start") changeDraft({ span: { ...span, start: Math.min(at, span.stop - 1), start_seconds: exact } });
  else changeDraft({ span: { ...span, stop: Math.max(at + (exact == null ? 1 : 0), span.start + 1), stop_seconds: exact } });
};

const isBetweenFrames = (frame, seconds) => Math.abs(player.secondsOf(frame) - seconds) > 1e-3;

const noEdge = () => toast("There is no boundary here that could move.");

/** Takes hold of the boundary that is nearest to the cursor. */
export const takeEdge = () => {
  const draft = settled();
  const edge = nearestEdge(runsAfter(draft, baseRuns(), state.facts.classes), player.frame);
  if (!edge) return noEdge();
  player.seek(edge.to);
  return changeDraft({ ...draft, edge });
};

/** Moves the edge by frames of the file, or by seconds. */
export const nudge = (direction, isSecond) => {
  if (!state.draft?.edge) takeEdge();
  const edge = state.draft?.edge;
  if (!edge) return;
  const by = direction * (isSecond ? 1 : 1 / (player.mode === "video" ? state.video.source_fps : state.video.fps));
  const seconds = (edge.seconds ?? player.secondsOf(edge.to)) + by;
  const frame = player.edgeFrameAt(seconds);
  moveEdgeTo(frame, isBetweenFrames(frame, seconds) ? seconds : null);
};

const moveEdgeTo = (frame, seconds = null) => {
  const edge = movedEdge(state.draft.edge, frame, seconds);
  changeDraft({ edge });
  player.seekSeconds(edge.seconds ?? player.secondsOf(edge.to));
};

/** Moves the edge to where the flag or else the models have it. */
export const snap = () => {
  if (!state.draft?.edge) takeEdge();
  if (!state.draft?.edge) return;
  const [best] = snapPlaces().sort((a, b) => Math.abs(a - state.draft.edge.to) - Math.abs(b - state.draft.edge.to));
  if (best == null) toast("Neither the flag nor the models propose a boundary here.");
  else moveEdgeTo(best);
};

const snapPlaces = () => {
  const proposed = proposalOf(state.flag).flatMap(({ start, stop }) => [start, stop]);
  const own = new Set(state.video.labels.map(([start]) => start));
  const places = proposed.filter((place) => !own.has(place) && place > 0 && place < state.video.num_frames);
  return places.length ? places : (state.predicted ?? []).slice(1).map(([start]) => start);
};

onEdgeDrag((frame, phase, event) => {
  if (phase === "start") {
    const isProposed = !state.draft && !state.flag.reviews.length;
    const draft = isProposed ? newDraft(plain(proposalOf(state.flag))) : settled();
    const edge = nearestEdge(runsAfter(draft, baseRuns(), state.facts.classes), frame, 1);
    if (edge) changeDraft({ ...draft, edge });
    return;
  }
  if (!state.draft?.edge) return;
  const [start, stop] = state.view;
  const near = (SNAP_PIXELS * (stop - start)) / $("cursor").clientWidth;
  const places = [...snapPlaces(), player.edgeFrameAt(player.seconds)];
  const snapped = event.altKey ? null : places.find((place) => Math.abs(place - frame) <= near);
  changeDraft({ edge: movedEdge(state.draft.edge, snapped ?? frame) });
  if (phase === "end") player.seek(state.draft.edge.to);
});

/** The segment at the cursor is cut there; then the label of its second part is asked for. */
export const splitHere = () => {
  const at = player.edgeFrameAt(player.seconds);
  if (!split(draftRuns(), at, "")) return toast("Move the cursor into a segment to split it there.");
  changeDraft({ ...settled(), splitAt: at });
  return openChooser();
};

export const mergeHere = (isForward) => {
  const edits = merge(draftRuns(), player.frame, state.facts.classes, isForward);
  if (!edits) return toast("There is no segment beside this one that it could become part of.");
  const draft = settled();
  return changeDraft({ ...draft, edits: [...draft.edits, ...edits] });
};

export const swapHere = () => {
  const edits = swap(draftRuns(), player.frame, state.facts.classes);
  if (!edits) return toast("There is no labelled segment after this one to swap it with.");
  const draft = settled();
  return changeDraft({ ...draft, edits: [...draft.edits, ...edits] });
};

export const saveDraft = (event) => {
  const edits = currentEdits();
  if (!edits.length) {
    changeDraft(null);
    return toast("Nothing was changed.");
  }
  const proposal = proposalOf(state.flag);
  const isExact = edits.some((edit) => edit.start_seconds != null || edit.stop_seconds != null);
  if (isFlag(state.flag) && !isExact && spansText(edits) === spansText(proposal)) return accept(event);
  return decide({ decision: "edited", edits }, event);
};

/** Shows the segment at the cursor as a span of its own: an error that no flag is about. */
export const markHere = async () => {
  const { video, facts } = state;
  const [start, stop, label] = runAt(video.labels, player.frame);
  const known = state.videoFlags.find((one) => one.start === start && one.stop === stop);
  const name = facts.classes[label]?.name ?? "";
  const { seconds } = player;
  const marked = known ?? {
    rank: null, video: video.video, start, stop, label: name, suggested: name, kind: "missed", why: "Not flagged: say what is wrong here.",
    start_seconds: player.secondsOf(start), stop_seconds: player.secondsOf(stop), reviews: [], state: "undecided",
  };
  if (!known) state.missed.push(marked);
  showFlag(marked, known ? queue.indexOf(known) : state.index);
  await state.loading;
  player.seekSeconds(seconds);
};
