// Used by all parts of the page: elements by id, short notices, and errors of requests.

import { RequestError } from "./api.js";

const NOTICE_MS = 2200;
const ERROR_MS = 6000;

export const $ = (id) => document.getElementById(id);

let hideTimer = null;

export const toast = (sentence, isError = false) => {
  clearTimeout(hideTimer);
  $("toast").textContent = sentence;
  $("toast").className = `toast on${isError ? " bad" : ""}`;
  hideTimer = setTimeout(() => { $("toast").className = "toast"; }, isError ? ERROR_MS : NOTICE_MS);
};

/** Runs an action and shows why a request failed; any other error is a bug of this page and is raised. */
export const showErrors = async (action) => {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    toast(error.message, true);
  }
};

/** A sentence instead of a span. */
export const showMessage = (sentence) => {
  $("main").hidden = true;
  $("empty").hidden = false;
  $("empty").textContent = sentence;
};
