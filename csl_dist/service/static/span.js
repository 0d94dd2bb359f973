// The shown span: its picture, its panel and its curves.

import { addDecision, editsOf, withEdits } from "./decisions.js";
import { draftEdits } from "./draft.js";
import { $, showErrors } from "./page.js";
import { showChange, showCursorPlace, showDecisions, showHeading, showNeighbours, showTypical } from "./panel.js";
import { Player } from "./player.js";
import { classColour, isFlag, proposalOf, state } from "./state.js";
import { Timeline } from "./timeline.js";
import { highestLoss } from "./timeline_rows.js";

const CONTEXT_SHARE = 3;
const MIN_CONTEXT_SECONDS = 4;
const MAX_FLAGS = 1000;
const MAX_LOSS_COLUMNS = 600;
const VIEW_MS = 90;
const PREPARING_MS = 4000;
const HURRIED_MS = 250; // between two spans; who skims looks at none of them
const LOOKING_MS = 60; // after which nothing more was asked for: the span is looked at

export const player = new Player(
  { stage: $("stage"), video: $("video"), picture: $("picture"), noPicture: $("no-picture"), note: $("media-note") },
  {
    onMove: (frame, seconds) => {
      timeline.move(placeOf(seconds));
      showCursor(frame, seconds);
    },
    onState: (playing) => showPlayerState(playing),
  },
);

const edgeHandlers = { onEdge: () => {} };

/** What dragging an edge does; the draft knows. */
export const onEdgeDrag = (handler) => { edgeHandlers.onEdge = handler; };

export const timeline = new Timeline($("drawing"), $("cursor"), {
  onSeek: (frame) => player.seek(frame),
  onView: (start, stop) => {
    state.view = [start, stop];
    showView();
  },
  onEdge: (...given) => edgeHandlers.onEdge(...given),
  edges: () => (state.video ? shownRuns().slice(1).map(([start]) => start) : []),
});

const showPlayerState = (playing) => {
  $("play-text").textContent = playing ? "Stop" : "Play";
  const { loop, muted, speed } = state.player;
  $("loop").setAttribute("aria-pressed", loop);
  $("sound").setAttribute("aria-pressed", !muted);
  $("speed").textContent = `${speed}×`;
  const cameras = player.facts?.cameras ?? [];
  $("camera").hidden = cameras.length < 2;
  if (cameras.length > 1) $("camera-name").textContent = player.camera ?? cameras[0].name;
};

/** The place of a time in frames, with a fraction between two. */
const placeOf = (seconds) => {
  const frame = player.frameAt(seconds);
  const [a, b] = [player.secondsOf(frame), player.secondsOf(frame + 1)];
  return frame + Math.min(1, Math.max(0, (seconds - a) / (b - a || 1)));
};

let shownAt = 0; // when the last span was gone to

/**
 * Shows a flag of the queue: what is known of it at once, the rest when `state.loading` is done, if
 * nobody has gone on by then.
 */
export const showFlag = (flag, index) => {
  const isHurried = performance.now() - shownAt < HURRIED_MS;
  shownAt = performance.now();
  player.stop();
  $("main").ariaBusy = "true"; // until its curves are drawn, or can't be
  Object.assign(state, { flag, index, draft: null, view: null });
  $("empty").hidden = true;
  $("main").hidden = false;
  const place = isFlag(flag) ? { rank: flag.rank } : { video: flag.video, start: flag.start, stop: flag.stop };
  history.replaceState(null, "", `#${new URLSearchParams({ audit: state.facts.id, ...place })}`);
  const isOther = state.video?.video !== flag.video;
  if (isOther) {
    // What is known is shown at once; what the fix does is known when the video's labels have arrived.
    Object.assign(state, { video: null, videoFlags: [], predicted: null, missed: [] });
  }
  showSpan(flag);
  state.loading = showErrors(async () => {
    if (isHurried) await new Promise((done) => { setTimeout(done, LOOKING_MS); });
    try {
      if (state.flag === flag) await load(flag, isOther);
    } catch (error) {
      rest();
      throw error;
    }
  });
};

/** Fetches what is not known of a span yet, with the newest decisions on it, and draws it. */
const load = async (flag, isOther) => {
  try {
    if (isOther) await openVideo(flag);
  } finally {
    if (state.flag === flag) showSpan(flag);
  }
  if (state.flag !== flag) return;
  const { flags } = await state.api.flags({ video: flag.video, limit: MAX_FLAGS });
  if (state.flag !== flag) return; // somebody has gone on, or another audit was opened
  const isShown = (one) => one.start === flag.start && one.stop === flag.stop;
  flags.find(isShown)?.reviews.forEach((review) => addDecision(flag, review));
  const missed = state.missed.filter((one) => one.video === flag.video && !isShown(one));
  state.videoFlags = [flag, ...flags.filter((one) => !isShown(one)), ...missed];
  player.seek(flag.start);
  showPanel();
  showErrors(draw);
  showErrors(() => showTypical(flag, state.api));
};

const showSpan = (flag) => {
  const rate = (flag.stop_seconds - flag.start_seconds) / (flag.stop - flag.start);
  showHeading(flag, proposalOf(flag), classColour, (frame) => (state.video ? player.secondsOf(frame) : frame * rate));
  showPanel();
};

let upcoming = null; // facts of the video that comes next, asked for ahead of time

/** Asks for the facts of the video that is shown next. */
export const prefetchFacts = (id) => {
  const { api } = state;
  upcoming = { id, api, facts: api.video(id) };
  upcoming.facts.catch(() => {}); // it is asked again when it is shown
};

const videoFacts = (api, id) => {
  const isKnown = upcoming?.id === id && upcoming.api === api;
  return isKnown ? upcoming.facts.catch(() => api.video(id)) : api.video(id);
};

/** Fetches the facts of a video; without them there is neither picture nor curve. */
const openVideo = async (flag) => {
  const { api } = state;
  const id = flag.video;
  try {
    const [video, missed] = await Promise.all([videoFacts(api, id), api.flags({ source: "missed", video: id, limit: MAX_FLAGS })]);
    if (state.flag !== flag) return;
    Object.assign(state, { video, missed: missed.flags });
    player.open(video, { media: (camera) => api.mediaUrl(id, camera), picture: (frame) => api.pictureUrl(id, frame) });
    if (video.preparing) setTimeout(() => showErrors(() => watchPreparing(id)), PREPARING_MS);
    showErrors(async () => {
      const { runs } = await api.prediction(id);
      if (state.video !== video) return;
      state.predicted = runs;
      redraw();
    });
  } catch (error) {
    if (state.flag !== flag) return;
    player.close(error.message);
    timeline.clear();
    throw error;
  }
};

/** Plays a file as soon as the service has made one that browsers play. */
const watchPreparing = async (id) => {
  if (state.video?.video !== id) return;
  const video = await state.api.video(id);
  if (state.video?.video !== id) return;
  if (video.preparing) {
    player.note.textContent = video.note;
    setTimeout(() => showErrors(() => watchPreparing(id)), PREPARING_MS);
    return;
  }
  const { seconds } = player;
  state.video = video;
  player.open(video, { media: (camera) => state.api.mediaUrl(id, camera), picture: (frame) => state.api.pictureUrl(id, frame) });
  player.seekSeconds(seconds);
};

export const showPanel = () => showDecisions(state.flag, state.reviewer, proposalOf(state.flag), state.draft && currentEdits());

/** Labels by the decisions on other spans of the video: what a draft starts from. */
export const baseRuns = () =>
  withEdits(state.video.labels, editsOf(state.videoFlags.filter((one) => one !== state.flag)), state.facts.classes);

/** The edits of the shown span: those of the draft, else those of the last decision. */
export const currentEdits = () => {
  if (state.draft) return draftEdits(state.draft, baseRuns(), state.facts.classes);
  return editsOf([state.flag]);
};

/** All edits in the order in which they count: a draft is the newest, and decisions go by their numbers. */
const allEdits = () => (state.draft
  ? [...editsOf(state.videoFlags.filter((one) => one !== state.flag)), ...currentEdits()] : editsOf(state.videoFlags));

/** Whether the fix is only proposed: nobody has decided, nothing is being changed. */
const isProposal = () => !state.draft && !state.flag.reviews.length && proposalOf(state.flag).length > 0;

/** The runs in the row whose edges can be dragged. */
export const shownRuns = () => {
  if (isProposal()) return withEdits(baseRuns(), proposalOf(state.flag), state.facts.classes);
  return withEdits(state.video.labels, allEdits(), state.facts.classes);
};

const showCursor = (frame, seconds) => {
  if (!state.video) return;
  const runs = withEdits(state.video.labels, allEdits(), state.facts.classes);
  const i = runs.findIndex(([a, b]) => frame >= a && frame < b);
  const name = (run) => (run ? state.facts.classes[run[2]]?.name ?? "unlabelled" : null);
  showCursorPlace(seconds, frame, state.facts.classes[runs[i]?.[2]]);
  showNeighbours(name(runs[i - 1]), name(runs[i + 1]));
};

const aroundSpan = () => {
  const { flag, video } = state;
  const context = Math.max(CONTEXT_SHARE * (flag.stop - flag.start), Math.round(MIN_CONTEXT_SECONDS * video.fps));
  return [Math.max(0, flag.start - context), Math.min(video.num_frames, flag.stop + context)];
};

let baseline = null; // the curve before any decision, of the last drawing
let curves = null; // of the last drawing

/** Scores and losses under the labels as edited, and the score before any decision. */
const fetchCurves = async ([start, stop], edits, signal) => {
  const { flag, facts, api } = state;
  const body = { video: flag.video, start, stop, columns: Math.min(timeline.columns, stop - start) };
  const plain = edits.map(({ start: a, stop: b, label }) => ({ start: a, stop: b, label }));
  const scores = (more) => api.scores({ ...body, ...more }, signal);
  const key = JSON.stringify([facts.id, body]);
  const own = baseline?.key === key ? baseline : { key, score: (await scores({ names: ["deciding"] })).scores.deciding };
  baseline = own;
  const [deciding, losses, ...csl] = await Promise.all([
    scores({ names: ["deciding"], edits: plain, of: [flag.start, flag.stop] }),
    api.losses({ ...body, edits: plain, columns: Math.min(MAX_LOSS_COLUMNS, body.columns) }, signal),
    ...facts.scorers.map((scorer) => scores({ names: ["csl"], scorer, edits: plain })),
  ]);
  if (!edits.length || own.highest === undefined) own.highest = highestLoss(losses);
  return {
    start,
    stop,
    change: deciding.change,
    score: deciding.scores.deciding,
    before: edits.length ? own.score : null,
    csl: facts.scorers.map((name, i) => ({ name, values: csl[i].scores.csl })),
    losses,
    highestLoss: own.highest,
  };
};

let pending = null;

/** Fetches the curves under the labels as edited, and draws them. */
export const draw = async () => {
  const { flag, video } = state;
  if (!video) return;
  state.view ??= aroundSpan();
  redraw();
  pending?.abort();
  pending = new AbortController();
  const range = [Math.floor(state.view[0]), Math.ceil(state.view[1])];
  const proposed = isProposal();
  const edits = proposed ? [...allEdits(), ...proposalOf(flag)] : allEdits();
  let fetched;
  try {
    fetched = await fetchCurves(range, edits, pending.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    rest();
    throw error;
  }
  if (state.flag !== flag) return;
  curves = fetched;
  redraw();
  showChange(fetched.change, edits.length > 0, proposed);
  document.body.dataset.drawn = ++state.drawn;
  rest();
};

/** Says that the span stands there as it is. */
const rest = () => { $("main").ariaBusy = "false"; };

/** Draws what is known, without asking for anything. */
const redraw = () => {
  const { flag, video, draft } = state;
  if (!video || !state.view) return;
  const proposed = isProposal();
  const edits = proposed ? proposalOf(flag) : allEdits();
  const isChanged = proposed || draft || edits.length > 0;
  timeline.draw({
    start: state.view[0],
    stop: state.view[1],
    numFrames: video.num_frames,
    secondsOf: (frame) => player.secondsOf(Math.min(frame, video.num_frames)),
    placeOf,
    classes: state.facts.classes,
    labels: video.labels,
    changed: isChanged ? shownRuns() : null,
    changedName: proposed ? "with the fix" : draft ? "as you edit" : "as reviewed",
    isProposal: proposed,
    changes: edits,
    predicted: state.predicted,
    flags: state.videoFlags,
    known: video.known_errors,
    current: flag,
    curves: curves && curves.stop > state.view[0] && curves.start < state.view[1] ? curves : null,
    threshold: video.threshold,
    marks: { span: draft?.span ?? null, edges: draft?.edge ? [draft.edge.to] : draft?.span ? [draft.span.start, draft.span.stop] : [] },
  });
  showCursor(player.frame, player.seconds);
  $("canvases").dataset.view = state.view.map(Math.round).join(" ");
  const isWhole = state.view[1] - state.view[0] >= video.num_frames;
  $("zoom-text").textContent = isWhole ? "around the span" : "whole video";
};

let viewTimer = null;

/** Draws another part of the video at once, with the curves that are there, and fetches the others. */
const showView = () => {
  redraw();
  clearTimeout(viewTimer);
  viewTimer = setTimeout(() => showErrors(draw), VIEW_MS);
};

export const toggleZoom = () => {
  const isWhole = state.view && state.view[1] - state.view[0] >= state.video.num_frames;
  state.view = isWhole ? aroundSpan() : [0, state.video.num_frames];
  showErrors(draw);
};

/** Brings a frame into view, if it is not. */
const reveal = (frame) => {
  const [start, stop] = state.view;
  if (frame >= start && frame < stop) return;
  const half = (stop - start) / 2;
  const first = Math.max(0, Math.min(state.video.num_frames - 2 * half, frame - half));
  state.view = [first, first + 2 * half];
  showView();
};

export const goTo = (frame) => {
  player.stop();
  player.seek(frame);
  reveal(frame);
};

/** Goes to the next or the previous edge between two labels. */
export const goToBoundary = (direction) => {
  const edges = shownRuns().slice(1).map(([start]) => start);
  const next = direction > 0 ? edges.find((edge) => edge > player.frame) : edges.findLast((edge) => edge < player.frame);
  if (next != null) goTo(next);
};

/** Goes to the next stretch where models predict another class than the label. */
export const goToDisagreement = (direction) => {
  const runs = withEdits(state.video.labels, allEdits(), state.facts.classes);
  const least = Math.max(2, Math.round(state.video.fps / 2));
  const found = (state.predicted ?? []).flatMap(([a, b, cls]) => runs
    .filter(([c, d, label]) => label >= 0 && label !== cls && Math.min(b, d) - Math.max(a, c) >= least)
    .map(([c]) => Math.max(a, c)));
  const next = direction > 0 ? found.find((frame) => frame > player.frame) : found.findLast((frame) => frame < player.frame);
  if (next != null) goTo(next);
  return next != null;
};
