// What is shown, and the order of actions on it.

import { $, showErrors } from "./page.js";

export const state = {
  reviewer: localStorage.getItem("csl-reviewer"),
  api: null,
  facts: null, // facts of the audit
  last: 0, // number of the newest known decision
  flag: null,
  index: -1, // of the flag in the queue
  video: null, // facts of the flag's video
  videoFlags: [], // all flags on it
  boundary: null, // a boundary that is being moved: start, stop, label
  undo: [], // flags decided in this tab, each with the decision before
  zoomed: true,
  drawn: 0, // number of drawings so far
};

/** Actions run one after the other: an action waits until a span is loaded or saved. */
let lastAction = Promise.resolve();
export const enqueue = (action) => {
  lastAction = lastAction.then(() => showErrors(action)).catch(reportError);
};

export const isSpanShown = () => state.flag && !$("main").hidden;

/** Runs an action on the shown span after the actions before it. */
export const enqueueOnSpan = (action) => enqueue(() => isSpanShown() && action());

export const classColour = (name) => state.facts.classes.find((one) => one.name === name)?.colour ?? "transparent";
