// The queue of spans to review: those that match the filters, and which is next.

import { $, showErrors, showMessage } from "./page.js";
import { leastExpected } from "./effort.js";
import { FlagList } from "./flag_list.js";
import { showProgress } from "./panel.js";
import { prefetch } from "./player.js";
import { prefetchFacts, showFlag } from "./span.js";
import { classColour, enqueueGoing, state } from "./state.js";
import { showWhatNext } from "./next.js";

const NOUNS = { flags: "flags", segments: "segments", sample: "sampled segments", missed: "errors without a flag" };

/** Whether the slider was moved, so that all findings from a probability on are shown. */
const isBelowLine = () => $("filter-source").value === "flags" && leastExpected() != null;

export const filters = () => ({
  source: isBelowLine() ? "findings" : $("filter-source").value,
  text: $("filter-text").value.trim(),
  state: $("filter-state").value,
  kind: $("filter-source").value === "flags" ? $("filter-kind").value : "",
  label: $("filter-label").value,
  annotator: $("filter-annotator").value,
  procedure: $("filter-procedure").value,
  reviewer: $("filter-reviewer").value.trim(),
  assigned: $("filter-mine").checked ? state.reviewer : "",
  sort: $("filter-sort").value,
  min_expected: isBelowLine() ? leastExpected() : "",
});

export const queue = new FlagList($("list"), $("spacer"), {
  fetchPage: (offset, limit) => state.api.flags({ ...filters(), offset, limit }),
  classColour,
  onTotal: (total) => {
    const source = $("filter-source").value;
    const all = state.facts.num_flags;
    const isAll = source !== "flags" || total === all;
    if (isBelowLine()) $("count").textContent = `${total} findings`;
    else $("count").textContent = isAll ? `${total} ${NOUNS[source]}` : `${total} of ${all} ${NOUNS[source]}`;
  },
  onSelect: (flag, index) => {
    showFlag(flag, index);
    showErrors(async () => {
      await state.loading;
      if (state.flag !== flag) return;
      queue.redraw(); // there may be new decisions since the list was fetched
      await prefetchNext(index);
    });
  },
  onClick: (index) => enqueueGoing(() => queue.select(index)),
});

/** Lets the browser fetch what the next span needs. */
const prefetchNext = async (index) => {
  const next = await queue.at(index + 1);
  if (!next || next.video === state.video?.video) return;
  const { api } = state;
  prefetchFacts(next.video);
  prefetch({
    media: state.video?.media, seconds: next.start_seconds,
    mediaUrl: api.mediaUrl(next.video), pictureUrl: api.pictureUrl(next.video, next.start),
  });
};

export const applyFilters = async () => {
  await queue.load();
  showErrors(async () => showProgress(await state.api.progress()));
  if (!(await queue.select(0))) showMessage("No span matches these filters.");
};

/** Shows the next span that is not reviewed. */
export const showNextUndecided = async () => {
  const index = await queue.nextUndecided(state.index);
  if (index < 0) await showWhatNext();
  else await queue.select(index);
};
