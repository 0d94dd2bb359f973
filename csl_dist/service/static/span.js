// The span that is shown: its picture, its panel, and the curves around it.

import { editsOf, take, withEdits } from "./decisions.js";
import { $, guarded } from "./page.js";
import { showChange, showDecisions, showHeading, showPlace } from "./panel.js";
import { Player } from "./player.js";
import { colourOf, state } from "./state.js";
import { element } from "./text.js";
import { Timeline, highestLoss } from "./timeline.js";

const CONTEXT_SHARE = 3;
const LEAST_CONTEXT_SECONDS = 4;
const MOST_FLAGS = 1000;
const MOST_LOSS_COLUMNS = 600;

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

/** Shows a flag from the queue, with the decisions on it as they are now. */
export const showFlag = async (flag, index) => {
  player.stop();
  Object.assign(state, { flag, index, moved: null });
  $("empty").hidden = true;
  $("main").hidden = false;
  history.replaceState(null, "", `#${new URLSearchParams({ audit: state.facts.id, rank: flag.rank })}`);
  showHeading(flag, colourOf);
  showPanel();
  if (state.video?.video !== flag.video) await openVideo(flag.video);
  const { flags } = await state.api.flags({ video: flag.video, limit: MOST_FLAGS });
  if (state.flag !== flag) return; // another audit was opened meanwhile
  const isShown = (one) => one.rank === flag.rank;
  flags.find(isShown)?.reviews.forEach((review) => take(flag, review));
  state.videoFlags = [flag, ...flags.filter((one) => !isShown(one))];
  player.seek(flag.start);
  showPanel();
  guarded(draw);
};

/** Fetches what is known of a video; without that there is neither picture nor curve. */
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

export const showPanel = () => showDecisions(state.flag, state.reviewer, state.moved);

const edits = () => editsOf(state.videoFlags, state.flag, state.moved);

const reviewedRuns = () => withEdits(state.video.labels, edits(), state.facts.classes);

const showCursor = (frame) => {
  if (!state.video) return;
  const [, , label] = reviewedRuns().find(([a, b]) => frame >= a && frame < b);
  showPlace(player.secondsOf(frame), frame, state.facts.classes[label]);
};

/** Moves the cursor a frame, or with Shift a second. */
export const step = (event, direction) => {
  player.stop();
  const frames = event.shiftKey ? Math.max(1, Math.round(state.video.fps)) : 1;
  player.seek(player.frame + direction * frames);
};

const shownRange = () => {
  const { flag, video } = state;
  if (!state.zoomed) return [0, video.num_frames];
  const context = Math.max(CONTEXT_SHARE * (flag.stop - flag.start), Math.round(LEAST_CONTEXT_SECONDS * video.fps));
  return [Math.max(0, flag.start - context), Math.min(video.num_frames, flag.stop + context)];
};

let baseline = null; // what was drawn last, before any decision

/** Scores and losses under the labels as they are now, and the score before any decision. */
const fetchCurves = async ([start, stop], made, signal) => {
  const { flag, facts, api } = state;
  const body = { video: flag.video, start, stop, columns: timeline.columns };
  const scores = (more) => api.scores({ ...body, ...more }, signal);
  const key = JSON.stringify([facts.id, body]);
  const own = baseline?.key === key ? baseline : { key, score: (await scores({ names: ["deciding"] })).scores.deciding };
  baseline = own;
  const [deciding, losses, ...csl] = await Promise.all([
    scores({ names: ["deciding"], edits: made, of: [flag.start, flag.stop] }),
    api.losses({ ...body, edits: made, columns: Math.min(MOST_LOSS_COLUMNS, body.columns) }, signal),
    ...facts.scorers.map((scorer) => scores({ names: ["csl"], scorer, edits: made })),
  ]);
  if (!made.length || own.highest === undefined) own.highest = highestLoss(losses);
  return {
    change: deciding.change,
    score: deciding.scores.deciding,
    before: made.length ? own.score : null,
    csl: facts.scorers.map((name, i) => ({ name, values: csl[i].scores.csl })),
    losses,
    highestLoss: own.highest,
  };
};

let asking = null;

/** Fetches the curves under the labels as they are now, and draws them. */
export const draw = async () => {
  const { flag, video } = state;
  if (!video) return;
  asking?.abort();
  asking = new AbortController();
  const range = shownRange();
  const made = edits();
  let curves;
  try {
    curves = await fetchCurves(range, made, asking.signal);
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
    reviewed: made.length ? reviewedRuns() : null,
    flags: state.videoFlags,
    known: video.known_errors,
    current: flag,
    moved: state.moved,
    threshold: video.threshold,
  });
  showChange(curves.change, made.length > 0);
  showCursor(player.frame);
  $("zoom-text").textContent = state.zoomed ? "whole video" : "around the span";
  document.body.dataset.drawn = ++state.drawn;
};

export const zoom = () => {
  state.zoomed = !state.zoomed;
  guarded(draw);
};
