// The spans to review: those that fit the filters, and which comes next.

import { $, showEmpty, toast } from "./page.js";
import { Queue } from "./queue.js";
import { showFlag } from "./span.js";
import { act, colourOf, state } from "./state.js";

const filters = () => ({
  text: $("filter-text").value.trim(),
  state: $("filter-state").value,
  kind: $("filter-kind").value,
  label: $("filter-label").value,
  min_score: $("filter-score").value,
});

export const queue = new Queue($("list"), $("spacer"), {
  fetchPage: (offset, limit) => state.api.flags({ ...filters(), offset, limit }),
  colourOf,
  onTotal: (total) => {
    const all = state.facts.num_flags;
    $("count").textContent = total === all ? `${all} spans, worst first` : `${total} of ${all} spans`;
  },
  onSelect: showFlag,
  onClick: (index) => act(() => queue.select(index)),
});

export const applyFilters = async () => {
  await queue.load();
  if (!(await queue.select(0))) showEmpty("No span fits these filters.");
};

/** Shows the next span that nobody has decided. */
export const goOn = async () => {
  const index = await queue.nextUndecided(state.index);
  if (index < 0) toast("Every span in this list is reviewed.");
  else await queue.select(index);
};
