// What is looked at, and the order in which things are done to it.

import { $, guarded } from "./page.js";

export const state = {
  reviewer: localStorage.getItem("csl-reviewer"),
  api: null,
  facts: null, // of the audit
  last: 0, // number of the newest decision that was seen
  flag: null,
  index: -1, // of the flag, in the queue
  video: null, // facts of the flag's video
  videoFlags: [], // all flags on it
  moved: null, // a boundary in the making: start, stop, label
  undo: [], // flags that were decided here, with the decision before
  zoomed: true,
  drawn: 0, // how often curves were
};

/** One after the other: what comes while a span is loaded or saved waits for that. */
let doing = Promise.resolve();
export const inTurn = (action) => {
  doing = doing.then(() => guarded(action)).catch(reportError);
};

export const isReady = () => state.flag && !$("main").hidden;

/** Does something to the span that is shown when its turn has come. */
export const act = (action) => inTurn(() => isReady() && action());

export const colourOf = (name) => state.facts.classes.find((one) => one.name === name)?.colour ?? "transparent";
