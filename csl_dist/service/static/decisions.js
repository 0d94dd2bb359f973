// What follows from decisions: whether a span is disputed, and which labels change.

const byNumber = (a, b) => a.number - b.number;

export const isAbout = (review, flag) =>
  flag.video === review.video && flag.start === review.start && flag.stop === review.stop;

/** Adds a decision to a flag, unless the flag has a later one of the same person. */
export const addDecision = (flag, review) => {
  if (flag.reviews.some((one) => one.reviewer === review.reviewer && one.number >= review.number)) return;
  const others = flag.reviews.filter((one) => one.reviewer !== review.reviewer);
  // Own decisions are added at once; an earlier one of somebody else may arrive after them.
  flag.reviews = review.decision === "withdrawn" ? others : [...others, review].sort(byNumber);
  flag.state = stateOf(flag.reviews);
};

const stateOf = (reviews) => {
  if (!reviews.length) return "undecided";
  const sure = reviews.filter((review) => review.decision !== "unsure");
  const kinds = new Set(sure.map((r) => [r.decision, r.label, r.new_start, r.new_stop].join("|")));
  return kinds.size > 1 ? "disputed" : "decided";
};

/** The edits by the last decision on each span of a video, and by a boundary that is being moved. */
export const editsOf = (flags, current, boundary) => {
  const decided = boundary ? flags.filter((flag) => flag.rank !== current.rank) : flags;
  const last = decided.map((flag) => flag.reviews.at(-1)).filter((review) => review?.label);
  const edits = last.sort(byNumber).map((review) => ({
    start: review.new_start ?? review.start,
    stop: review.new_stop ?? review.stop,
    label: review.label,
  }));
  return boundary ? [...edits, boundary] : edits;
};

/** Runs of labels (start, stop, class id) after some edits; a later one overwrites an earlier one. */
export const withEdits = (labels, edits, classes) => {
  let runs = labels;
  for (const edit of edits) {
    const id = classes.findIndex((one) => one.name === edit.label);
    const kept = runs.flatMap(([a, b, label]) => [
      ...(a < edit.start ? [[a, Math.min(b, edit.start), label]] : []),
      ...(b > edit.stop ? [[Math.max(a, edit.stop), b, label]] : []),
    ]);
    runs = [...kept, [edit.start, edit.stop, id]].sort((x, y) => x[0] - y[0]);
  }
  return runs;
};
