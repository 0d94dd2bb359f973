// What to do when every span of the list is reviewed, and what can be downloaded.

import { $ } from "./page.js";
import { state } from "./state.js";
import { element } from "./text.js";

const FORMATS = ["csv", "label-studio", "fiftyone", "cvat", "activitynet"];

const link = (href, words) => element("a", { href, download: "" }, words);

/** The dialog of downloads; it says so if the list is done. */
export const showDownloads = async (isDone = false) => {
  const { api, facts } = state;
  const progress = await api.progress();
  const corrected = progress.wrong + progress.missed;
  $("next-title").textContent = isDone ? "Every span in this list is reviewed" : "Download";
  const root = facts.root;
  const steps = [];
  if (corrected) {
    steps.push(element("li", {}, link(api.correctedUrl(), "Corrected labels"), ` in the dataset's own layout. Then `,
      element("code", {}, `csl relabel ${root} FOLDER`), " audits again under them, in seconds."));
  }
  steps.push(element("li", {}, "Flags for other tools: ", ...FORMATS.flatMap((format, i) =>
    [i ? ", " : "", link(api.exportUrl(format), format)])));
  if (isDone) {
    steps.push(element("li", {}, "Look further down: choose ", element("b", {}, "all segments"), " in the list of spans."));
    steps.push(element("li", {}, "How good is the dataset now? ", element("code", {}, `csl certify ${root}`),
      " draws a sample to review here."));
  }
  $("next-steps").replaceChildren(...steps);
  $("next-dialog").showModal();
};

export const showWhatNext = () => showDownloads(true);
