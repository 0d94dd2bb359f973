// Text and numbers as the page shows them.

export const clock = (seconds, digits = 1) => {
  const scale = 10 ** digits;
  const units = Math.round(seconds * scale);
  const minutes = Math.floor(units / (60 * scale));
  const hours = Math.floor(minutes / 60);
  const rest = ((units % (60 * scale)) / scale).toFixed(digits).padStart(3 + digits, "0");
  return hours ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
};

export const score = (value) => (value == null ? "–" : value.toFixed(2).replace("-", "−"));

export const percent = (share) => `${Math.round(100 * share)} %`;

/** How likely a flag is an error by the decisions so far, in words; null where nobody can say. */
export const likely = ({ probability, expected }) => {
  if (probability == null || expected == null) return null;
  return expected > 0.99 ? "> 99 %" : percent(expected);
};

export const duration = (seconds) => (seconds < 60 ? `${seconds.toFixed(1)} s` : `${(seconds / 60).toFixed(1)} min`);

/** An element with attributes and children; strings become text, never markup. */
export const element = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

export const swatch = (colour) => {
  const node = element("i", { class: "swatch" });
  node.style.background = colour;
  return node;
};

export const ago = (when) => {
  const minutes = Math.floor((Date.now() - new Date(when)) / 60000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)} h ago`;
  return new Date(when).toLocaleDateString();
};

export const decisionWords = (review) => {
  switch (review.decision) {
    case "wrong": return `wrong, is ${review.label}`;
    case "boundary": return `${review.label} from frame ${review.new_start} to ${review.new_stop - 1}`;
    case "edited": return `changed: ${editWords(review.edits)}`;
    case "order": return "steps are out of order";
    case "correct": return "label is right";
    default: return review.decision;
  }
};

const editWords = (edits) =>
  edits.map(({ start, stop, label }) => `${label} in frames ${start}–${stop - 1}`).join(", ");

/** What accepting a flag does, in the words of the report; null if the flag proposes nothing. */
export const fixWords = (flag, proposal, seconds) => {
  const [word, ...numbers] = (flag.fix ?? "").split(" ");
  switch (word) {
    case "swap": return `Swap: ${flag.suggested}, then ${flag.label}`;
    case "boundary": {
      const by = seconds(Number(numbers[1])) - seconds(Number(numbers[0]));
      return `Boundary ${Math.abs(by).toFixed(1)} s ${by < 0 ? "earlier" : "later"}`;
    }
    case "insert": return `Insert ${flag.fix_label}`;
    case "delete": return `Part of ${flag.fix_label}`;
    case "rename": return `Rename to ${flag.fix_label}`;
    default: break;
  }
  if (flag.kind === "disorder") return "Steps are out of order";
  return proposal.length ? `It is ${flag.suggested}` : null;
};

export const KIND_WORDS = {
  mislabel: "wrong name", disorder: "order", missing: "missing step", insert: "step too many",
  boundary: "boundary", missed: "not flagged", segment: "segment", ambiguous: "ambiguous",
};

export const kindWords = (kind) => KIND_WORDS[kind] ?? kind;
