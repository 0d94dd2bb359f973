// What every part of the page uses: elements by id, notices, and refusals told as such.

import { Refused } from "./api.js";

const NOTICE_MS = 2200;
const REFUSAL_MS = 6000;

export const $ = (id) => document.getElementById(id);

let fading = null;

export const toast = (sentence, isBad = false) => {
  clearTimeout(fading);
  $("toast").textContent = sentence;
  $("toast").className = `toast on${isBad ? " bad" : ""}`;
  fading = setTimeout(() => { $("toast").className = "toast"; }, isBad ? REFUSAL_MS : NOTICE_MS);
};

/** Tells what a request was refused for; anything else is a mistake of this page, and is raised. */
export const guarded = async (action) => {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
};

/** A sentence in place of a span. */
export const showEmpty = (sentence) => {
  $("main").hidden = true;
  $("empty").hidden = false;
  $("empty").textContent = sentence;
};
