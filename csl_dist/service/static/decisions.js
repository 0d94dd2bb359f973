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

export const hasEdits = (review) => review.edits?.length > 0;

/** Whether two decisions say the same, whatever they are called. */
const verdict = (review) => (hasEdits(review) ? spansText(review.edits) : review.decision);

export const spansText = (edits) =>
  edits.map(({ start, stop, label }) => `${start} ${stop} ${label}`).sort().join("|");

const stateOf = (reviews) => {
  if (!reviews.length) return "undecided";
  const sure = reviews.filter((review) => review.decision !== "unsure");
  return new Set(sure.map(verdict)).size > 1 ? "disputed" : "decided";
};

/** The edits by the last decision on each of some flags, oldest first. */
export const editsOf = (flags) =>
  flags.map((flag) => flag.reviews.at(-1)).filter((review) => review && hasEdits(review))
    .sort(byNumber).flatMap((review) => review.edits);

/** Runs of labels (start, stop, class id) after some edits; a later one overwrites an earlier one. */
export const withEdits = (labels, edits, classes) => {
  let runs = labels;
  for (const edit of edits) {
    const id = classes.findIndex((one) => one.name === edit.label);
    const kept = runs.flatMap(([a, b, label]) => [
      ...(a < edit.start ? [[a, Math.min(b, edit.start), label]] : []),
      ...(b > edit.stop ? [[Math.max(a, edit.stop), b, label]] : []),
    ]);
    runs = joined([...kept, [edit.start, edit.stop, id]].sort((x, y) => x[0] - y[0]));
  }
  return runs;
};

/** Neighbouring runs of the same label as one. */
const joined = (runs) => {
  const result = [];
  for (const [start, stop, label] of runs) {
    const last = result.at(-1);
    if (last && last[2] === label && last[1] === start) last[1] = stop;
    else result.push([start, stop, label]);
  }
  return result;
};
