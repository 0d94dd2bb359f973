// What is shown, and the order of actions on it.

import { $, showErrors } from "./page.js";

const stored = (name, otherwise) => JSON.parse(localStorage.getItem(`csl-${name}`) ?? "null") ?? otherwise;

export const state = {
  reviewer: localStorage.getItem("csl-reviewer"),
  me: { name: null, may_see_annotators: false }, // what the service knows of the reviewer
  api: null,
  facts: null, // facts of the audit
  last: 0, // number of the newest known decision
  flag: null,
  index: -1, // of the flag in the queue
  video: null, // facts of the flag's video
  predicted: null, // what models predict for it: start, stop, class id
  videoFlags: [], // all flags on it, and spans that are no flags
  missed: [], // errors on it that were found without a flag
  draft: null, // edits that are not saved yet
  undo: [], // flags decided in this tab, each with the decision before
  view: null, // frames of the timeline: start, stop
  drawn: 0, // number of drawings so far
  loading: Promise.resolve(), // done when all of the shown span is there
  player: stored("player", { loop: true, muted: false, speed: 1 }),
};

/** Remembers how the reviewer likes to watch. */
export const changePlayer = (change) => {
  Object.assign(state.player, change);
  localStorage.setItem("csl-player", JSON.stringify(state.player));
};

/** Actions run one after the other. */
let lastAction = Promise.resolve();
export const enqueue = (action) => {
  lastAction = lastAction.then(() => showErrors(action)).catch(reportError);
};

export const isSpanShown = () => state.flag && !$("main").hidden;

/** Goes on from the shown span after the actions before it, whether or not all of it is there. */
export const enqueueGoing = (action) => enqueue(() => isSpanShown() && action());

/** Runs an action on the shown span once all of it is there, after the actions before it. */
export const enqueueOnSpan = (action) => enqueue(async () => {
  await state.loading;
  if (isSpanShown()) await action();
});

export const classColour = (name) => state.facts.classes.find((one) => one.name === name)?.colour ?? "transparent";

/** Classes in the order of the procedure, as legend, keys and lists show them. */
export const orderedClasses = () => state.facts.class_order.map((id) => state.facts.classes[id]);

/** What the shown flag proposes: edits. */
export const proposalOf = (flag) => flag.proposal ?? [];

/** Whether a span is one that the audit flagged, and not a segment or an error that flags missed. */
export const isFlag = (flag) => !["segment", "missed"].includes(flag.kind);
