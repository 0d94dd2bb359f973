"use strict";

const cellValue = (row, i) => {
  const cell = row.cells[i];
  const text = cell.dataset.sort ?? cell.textContent.trim();
  return text === "" || isNaN(text) ? text : Number(text);
};

const compare = (x, y) => {
  if (typeof x === "number" && typeof y === "number") return x - y;
  if (typeof x === "number") return -1;
  if (typeof y === "number") return 1;
  return x.localeCompare(y, undefined, { numeric: true });
};

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, i) => {
    heading.querySelector("button")?.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].sort((a, b) => compare(cellValue(a, i), cellValue(b, i)));
      body.append(...(up ? rows : rows.reverse()));
    });
  });
}

const showMatching = (table, output, noun, matches) => {
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    row.hidden = !matches(row);
    shown += !row.hidden;
  }
  const all = table.tBodies[0].rows.length;
  output.textContent = shown === all ? `${all} ${noun}` : `${shown} of ${all} ${noun}`;
};

const hasWords = (row, text) =>
  text.toLowerCase().split(/\s+/).every((word) => row.textContent.toLowerCase().includes(word));

const flags = document.getElementById("flags");
if (flags) {
  const field = (name) => document.getElementById(`filter-${name}`);
  const filter = () => {
    const [text, kind, label, least] = ["text", "kind", "label", "score"].map((n) => field(n).value);
    showMatching(flags, field("count"), "spans", (row) =>
      hasWords(row, text) &&
      (!kind || row.dataset.kind === kind) &&
      (!label || row.dataset.label === label || row.dataset.suggested === label) &&
      (least === "" || Number(row.dataset.score) >= Number(least)));
  };
  const form = document.getElementById("filters");
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}

const videos = document.getElementById("videos");
const videoText = document.getElementById("video-text");
videoText.addEventListener("input", () =>
  showMatching(videos, document.getElementById("video-count"), "videos", (row) =>
    hasWords(row, videoText.value)));
videoText.form.addEventListener("submit", (event) => event.preventDefault());

const openTarget = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.tagName !== "DETAILS") return;
  target.open = true;
  target.querySelector("summary").focus({ preventScroll: true });
  target.scrollIntoView();
};
addEventListener("hashchange", openTarget);
openTarget();

// A heatmap's colours are an index into the palette, so that the picture itself holds the losses.
const levels = new Map(PALETTE.map(([r, g, b], level) => [(r << 16) | (g << 8) | b, level]));

const readLosses = (image) => {
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height);
};

const columnLosses = (pixels, column, high) =>
  Array.from({ length: pixels.height }, (_, row) => {
    const at = 4 * (row * pixels.width + column);
    const [r, g, b] = pixels.data.slice(at, at + 3);
    return ((levels.get((r << 16) | (g << 8) | b) ?? 0) / 255) * high;
  });

for (const section of document.querySelectorAll("details.video")) {
  const slider = section.querySelector("input[type=range]");
  const image = section.querySelector(".heatmap");
  const marker = section.querySelector(".marker");
  const chart = section.querySelector(".chosen .chart");
  const picked = section.querySelector(".picked");
  const high = Number(slider.dataset.high);
  const numFrames = Number(slider.dataset.frames);
  let pixels = null;
  let line = null;
  const choose = () => {
    pixels ??= readLosses(image);
    const column = Number(slider.value);
    const frame = Math.floor((column * numFrames) / pixels.width);
    const losses = columnLosses(pixels, column, high);
    const [, , width, height] = chart.getAttribute("viewBox").split(" ").map(Number);
    const [left, bottom] = [44, 26];
    const top = Number(chart.dataset.top);
    const points = losses.map((loss, i) => {
      const x = left + (width - left - 6) * (i / Math.max(1, losses.length - 1));
      const y = (height - bottom) * (1 - Math.min(loss, top) / top) + 4;
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    if (!line) {
      line = document.createElementNS(chart.namespaceURI, "polyline");
      line.setAttribute("class", "picked-line");
      for (const [name, value] of [["fill", "none"], ["stroke", "#CC79A7"], ["stroke-width", "3"]]) line.setAttribute(name, value);
      chart.append(line);
    }
    line.setAttribute("points", points.join(" "));
    marker.hidden = picked.hidden = false;
    marker.style.left = `${(100 * (column + 0.5)) / pixels.width}%`;
    slider.nextElementSibling.textContent = `frame ${frame}`;
    picked.textContent = `thick line: frame ${frame}, chosen`;
  };
  slider.addEventListener("input", choose);
  image.addEventListener("click", (event) => {
    const box = image.getBoundingClientRect();
    slider.value = Math.floor(((event.clientX - box.left) / box.width) * (Number(slider.max) + 1));
    choose();
  });
}

let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const section of closed) section.open = true;
});
addEventListener("afterprint", () => closed.forEach((section) => { section.open = false; }));
