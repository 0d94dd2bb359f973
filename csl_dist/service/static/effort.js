// The threshold slider: what reviewing the flags above it takes, and what it is expected to bring.

import { $ } from "./page.js";
import { state } from "./state.js";
import { percent } from "./text.js";

let points = [];

export const showEffort = async () => {
  points = await state.api.effort();
  const slider = $("filter-expected");
  slider.closest("label").hidden = !points.some((point) => point.flags);
  showPoint();
};

const showPoint = () => {
  const least = Number($("filter-expected").value);
  const point = points.findLast((one) => one.min_expected <= least + 1e-9);
  if (!point) return;
  const minutes = point.minutes < 10 ? point.minutes.toFixed(1) : Math.round(point.minutes);
  $("effort").textContent = `${least ? `likely an error from ${percent(least)}` : "all"}: ${point.flags} flags, ${minutes} min, about ${Math.round(point.errors)} errors`;
};

export const listenToEffort = () => $("filter-expected").addEventListener("input", showPoint);
