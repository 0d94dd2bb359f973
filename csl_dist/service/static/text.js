// Text and numbers as the page shows them.

export const clock = (seconds) => {
  const tenths = Math.round(seconds * 10);
  const minutes = Math.floor(tenths / 600);
  const hours = Math.floor(minutes / 60);
  const rest = `${String(Math.floor((tenths % 600) / 10)).padStart(2, "0")}.${tenths % 10}`;
  return hours ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
};

export const score = (value) => (value == null ? "–" : value.toFixed(2).replace("-", "−"));

export const percent = (share) => `${Math.round(100 * share)} %`;

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
    case "correct": return "label is right";
    default: return review.decision;
  }
};
