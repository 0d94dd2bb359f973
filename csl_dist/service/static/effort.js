// The threshold slider: what reviewing all findings from it on takes, and what it is expected to bring.
// Before it is moved, the list holds the flags as they are; moved, also what lies below the line.

import { $ } from "./page.js";
import { state } from "./state.js";
import { percent } from "./text.js";

let points = [];

const isMoved = () => $("filter-expected").dataset.moved === "true";

/** The least probability that was chosen; null as long as the flags are shown as they are. */
export const leastExpected = () => (isMoved() ? Number($("filter-expected").value) : null);

export const showEffort = async () => {
  points = await state.api.effort();
  $("filter-expected").closest(".slide").hidden = !points.some((point) => point.flags);
  showPoint();
};

const showPoint = () => {
  const least = leastExpected();
  const point = points.find((one) => (least == null ? one.min_expected == null : Math.abs((one.min_expected ?? -1) - least) < 1e-9));
  $("as-flagged").hidden = least == null;
  $("filter-expected").setAttribute("aria-valuetext", least == null ? "as flagged" : percent(least));
  if (!point) return;
  const minutes = point.minutes < 10 ? point.minutes.toFixed(1) : Math.round(point.minutes);
  const what = least == null ? "as flagged" : `likely an error from ${percent(least)}`;
  const below = point.below ? `, ${point.below} below the line` : "";
  $("effort").textContent = `${what}: ${point.flags} places${below}, ${minutes} min, about ${Math.round(point.errors)} errors`;
};

const move = (isNow) => {
  $("filter-expected").dataset.moved = isNow;
  showPoint();
};

export const listenToEffort = (onReset) => {
  $("filter-expected").addEventListener("input", () => move(true));
  $("as-flagged").addEventListener("click", () => {
    move(false);
    onReset();
  });
};
