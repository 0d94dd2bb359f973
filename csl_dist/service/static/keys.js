// Keys, and the buttons that do what keys do.

import { $ } from "./page.js";

const BUTTONS = {
  accept: "a", correct: "c", other: "l", boundary: "b", unsure: "u", undo: "z",
  previous: "k", next: "j", "go-on": "Enter", play: " ", zoom: "v",
};

/** What takes the keyboard must do so before the next key comes; what it leads to waits its turn. */
const AT_ONCE = ["l", "m"];

/**
 * `actions` are by key; `act` does one when those before it are done, and `isReady` tells whether
 * there is a span to do it to.
 */
export const listen = ({ actions, act, isReady }) => {
  const perform = (key, event) => {
    if (AT_ONCE.includes(key)) actions[key](event);
    else act(() => actions[key](event));
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const { target } = event;
    if (target.matches("input, select, textarea")) {
      if (event.key === "Escape" || (event.key === "Enter" && target.id === "comment")) {
        target.blur();
        event.preventDefault();
      }
      return;
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (target.matches("button, a") && (key === "Enter" || key === " ")) return;
    if (key === "?") $("help-dialog").showModal();
    else if (key === "/") $("filter-text").focus();
    else if (isReady() && actions[key]) perform(key, event);
    else return;
    event.preventDefault();
  });
  for (const [id, key] of Object.entries(BUTTONS)) {
    $(id).addEventListener("click", (event) => {
      // Keys go on working as if the button had not been clicked.
      if (event.detail) $(id).blur();
      if (isReady()) perform(key, event);
    });
  }
  $("help-button").addEventListener("click", () => $("help-dialog").showModal());
};
