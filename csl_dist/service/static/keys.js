// Keys, and buttons that do the same.

import { $ } from "./page.js";
import { enqueueGoing, enqueueOnSpan } from "./state.js";

const BUTTONS = {
  accept: "a", correct: "c", other: "l", boundary: "b", unsure: "u", undo: "z", split: "x", merge: "d", swap: "w", edge: "e",
  previous: "k", next: "j", "next-undecided": "Enter", play: " ", zoom: "v", loop: "o", sound: "s", mark: "i",
  camera: "r", disagreement: "n", similar: "g", "save-draft": "Enter", "discard-draft": "Escape",
};

/** Keys that move the focus must act before the next key arrives; all others wait in the queue of actions. */
const IMMEDIATE_KEYS = ["l", "m"];
/** Keys that go on to another span need not wait until all of this one is there. */
const GOING_KEYS = ["j", "k", "ArrowDown", "ArrowUp", "Enter"];

/** `actions` by key; `isSpanShown` says whether there is a span to act on. */
export const listenToKeys = ({ actions, isSpanShown }) => {
  const perform = (key, event) => {
    if (IMMEDIATE_KEYS.includes(key)) actions[key](event);
    else (GOING_KEYS.includes(key) ? enqueueGoing : enqueueOnSpan)(() => actions[key](event));
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const { target } = event;
    if (target.matches("input:not([type=checkbox]), select, textarea")) {
      if (event.key === "Escape" || (event.key === "Enter" && target.id === "comment")) {
        target.blur();
        event.preventDefault();
      }
      return;
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (target.matches("button, a, summary") && (key === "Enter" || key === " ")) return;
    if (key === "?") $("help-dialog").showModal();
    else if (key === "/") $("filter-text").focus();
    else if (isSpanShown() && actions[key]) perform(key, event);
    else return;
    event.preventDefault();
  });
  // Without the focus on a button that was clicked, keys work as before, also after a dialog that it opened.
  document.addEventListener("click", (event) => event.detail && event.target.closest("button")?.blur(), true);
  for (const [id, key] of Object.entries(BUTTONS)) {
    $(id).addEventListener("click", (event) => isSpanShown() && perform(key, event));
  }
  $("help-button").addEventListener("click", () => $("help-dialog").showModal());
};
