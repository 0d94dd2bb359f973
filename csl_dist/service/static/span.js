// The shown span: its picture, its panel and its curves.

import { addDecision, editsOf, withEdits } from "./decisions.js";
import { $, showErrors } from "./page.js";
import { showChange, showDecisions, showHeading, showCursorPlace } from "./panel.js";
import { Player } from "./player.js";
import { classColour, state } from "./state.js";
import { element } from "./text.js";
import { Timeline, highestLoss } from "./timeline.js";

const CONTEXT_SHARE = 3;
const MIN_CONTEXT_SECONDS = 4;
const MAX_FLAGS = 1000;
const MAX_LOSS_COLUMNS = 600;

export const player = new Player(
  { video: $("video"), picture: $("picture"), noPicture: $("no-picture"), note: $("media-note") },
  {
    onMove: (frame) => {
      timeline.move(frame);
      showCursor(frame);
    },
    onState: (playing) => $("play").replaceChildren(playing ? "Stop " : "Play ", element("kbd", {}, "Space")),
  },
);
const timeline = new Timeline($("drawing"), $("cursor"), { onSeek: (frame) => player.seek(frame) });

/** Shows a flag of the queue, with the newest decisions on it. */
export const showFlag = async (flag, index) => {
  player.stop();
  Object.assign(state, { flag, index, boundary: null });
  $("empty").hidden = true;
  $("main").hidden = false;
  history.replaceState(null, "", `#${new URLSearchParams({ audit: state.facts.id, rank: flag.rank })}`);
  showHeading(flag, classColour);
  showPanel();
  if (state.video?.video !== flag.video) await openVideo(flag.video);
  const { flags } = await state.api.flags({ video: flag.video, limit: MAX_FLAGS });
  if (state.flag !== flag) return; // another audit was opened in the meantime
  const isShown = (one) => one.rank === flag.rank;
  flags.find(isShown)?.reviews.forEach((review) => addDecision(flag, review));
  state.videoFlags = [flag, ...flags.filter((one) => !isShown(one))];
  player.seek(flag.start);
  showPanel();
  showErrors(draw);
};

/** Fetches the facts of a video; without them there is neither picture nor curve. */
const openVideo = async (id) => {
  const { api } = state;
  Object.assign(state, { video: null, videoFlags: [] });
  try {
    const video = await api.video(id);
    if (state.api !== api) return;
    state.video = video;
    player.open(video, { media: api.mediaUrl(id), picture: (frame) => api.pictureUrl(id, frame) });
  } catch (error) {
    player.close(error.message);
    timeline.clear();
    throw error;
  }
};

export const showPanel = () => showDecisions(state.flag, state.reviewer, state.boundary);

const currentEdits = () => editsOf(state.videoFlags, state.flag, state.boundary);

const reviewedRuns = () => withEdits(state.video.labels, currentEdits(), state.facts.classes);

const showCursor = (frame) => {
  if (!state.video) return;
  const [, , label] = reviewedRuns().find(([a, b]) => frame >= a && frame < b);
  showCursorPlace(player.secondsOf(frame), frame, state.facts.classes[label]);
};

/** Moves the cursor by a frame, or with Shift by a second. */
export const moveCursor = (event, direction) => {
  player.stop();
  const frames = event.shiftKey ? Math.max(1, Math.round(state.video.fps)) : 1;
  player.seek(player.frame + direction * frames);
};

const shownRange = () => {
  const { flag, video } = state;
  if (!state.zoomed) return [0, video.num_frames];
  const context = Math.max(CONTEXT_SHARE * (flag.stop - flag.start), Math.round(MIN_CONTEXT_SECONDS * video.fps));
  return [Math.max(0, flag.start - context), Math.min(video.num_frames, flag.stop + context)];
};

let baseline = null; // the curve before any decision, of the last drawing

/** Scores and losses under the labels as edited, and the score before any decision. */
const fetchCurves = async ([start, stop], edits, signal) => {
  const { flag, facts, api } = state;
  const body = { video: flag.video, start, stop, columns: timeline.columns };
  const scores = (more) => api.scores({ ...body, ...more }, signal);
  const key = JSON.stringify([facts.id, body]);
  const own = baseline?.key === key ? baseline : { key, score: (await scores({ names: ["deciding"] })).scores.deciding };
  baseline = own;
  const [deciding, losses, ...csl] = await Promise.all([
    scores({ names: ["deciding"], edits, of: [flag.start, flag.stop] }),
    api.losses({ ...body, edits, columns: Math.min(MAX_LOSS_COLUMNS, body.columns) }, signal),
    ...facts.scorers.map((scorer) => scores({ names: ["csl"], scorer, edits })),
  ]);
  if (!edits.length || own.highest === undefined) own.highest = highestLoss(losses);
  return {
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
  pending?.abort();
  pending = new AbortController();
  const range = shownRange();
  const edits = currentEdits();
  let curves;
  try {
    curves = await fetchCurves(range, edits, pending.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    throw error;
  }
  if (state.flag !== flag) return;
  timeline.draw({
    ...curves,
    start: range[0],
    stop: range[1],
    numFrames: video.num_frames,
    secondsOf: (frame) => player.secondsOf(frame),
    frameAt: (seconds) => player.frameAt(seconds),
    classes: state.facts.classes,
    labels: video.labels,
    reviewed: edits.length ? reviewedRuns() : null,
    flags: state.videoFlags,
    known: video.known_errors,
    current: flag,
    boundary: state.boundary,
    threshold: video.threshold,
  });
  showChange(curves.change, edits.length > 0);
  showCursor(player.frame);
  $("zoom-text").textContent = state.zoomed ? "whole video" : "around the span";
  document.body.dataset.drawn = ++state.drawn;
};

export const toggleZoom = () => {
  state.zoomed = !state.zoomed;
  showErrors(draw);
};
