// The queue of spans to review: those that match the filters, and which is next.

import { $, showMessage, toast } from "./page.js";
import { FlagList } from "./flag_list.js";
import { showFlag } from "./span.js";
import { classColour, enqueueOnSpan, state } from "./state.js";

const filters = () => ({
  text: $("filter-text").value.trim(),
  state: $("filter-state").value,
  kind: $("filter-kind").value,
  label: $("filter-label").value,
  min_score: $("filter-score").value,
});

export const queue = new FlagList($("list"), $("spacer"), {
  fetchPage: (offset, limit) => state.api.flags({ ...filters(), offset, limit }),
  classColour,
  onTotal: (total) => {
    const all = state.facts.num_flags;
    $("count").textContent = total === all ? `${all} spans, worst first` : `${total} of ${all} spans`;
  },
  onSelect: showFlag,
  onClick: (index) => enqueueOnSpan(() => queue.select(index)),
});

export const applyFilters = async () => {
  await queue.load();
  if (!(await queue.select(0))) showMessage("No span matches these filters.");
};

/** Shows the next span that is not reviewed. */
export const showNextUndecided = async () => {
  const index = await queue.nextUndecided(state.index);
  if (index < 0) toast("Every span in this list is reviewed.");
  else await queue.select(index);
};
