// The timeline: labels, flags, scores and losses of the same frames, drawn on a canvas.

import { clock } from "./text.js";

const GUTTER = 96;
const GAP = 7;
const CIVIDIS = [[0, 34, 78], [65, 77, 107], [124, 123, 120], [188, 175, 111], [254, 232, 56]];

export class Timeline {
  constructor(drawing, cursor, { onSeek }) {
    this.drawing = drawing;
    this.overlay = cursor;
    this.onSeek = onSeek;
    cursor.addEventListener("pointerdown", (event) => {
      cursor.setPointerCapture(event.pointerId);
      this.seekTo(event);
    });
    cursor.addEventListener("pointermove", (event) => event.buttons && this.seekTo(event));
  }

  seekTo(event) {
    if (!this.view) return;
    const x = event.clientX - this.overlay.getBoundingClientRect().left - GUTTER;
    const { start, stop } = this.view;
    const frame = start + Math.floor((x / this.plotWidth) * (stop - start));
    this.onSeek(Math.min(stop - 1, Math.max(start, frame)));
  }

  clear() {
    this.view = null;
    for (const canvas of [this.drawing, this.overlay]) sized(canvas, 0, 0);
  }

  /** Number of columns over the whole width. */
  get columns() {
    const width = this.drawing.parentElement.clientWidth - GUTTER;
    return Math.max(50, Math.min(2000, Math.round(width)));
  }

  /** `view` has the range of frames and everything that is drawn. */
  draw(view) {
    this.view = view;
    const width = this.drawing.parentElement.clientWidth;
    this.plotWidth = width - GUTTER;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const rows = rowsOf(view, colour);
    this.height = rows.reduce((sum, row) => sum + row.height + GAP, 18);
    const context = sized(this.drawing, width, this.height);
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    const x = (frame) => GUTTER + ((frame - view.start) / (view.stop - view.start)) * this.plotWidth;
    const plot = { context, x, left: GUTTER, width: this.plotWidth, colour, view };
    let top = 2;
    for (const row of rows) {
      context.save();
      context.beginPath();
      context.rect(0, top - 2, width, row.height + 4);
      context.clip();
      row.draw(plot, top, row.height);
      context.restore();
      context.fillStyle = colour("soft");
      context.textAlign = "right";
      context.textBaseline = "middle";
      row.name.split("\n").forEach((line, i, lines) =>
        context.fillText(line, GUTTER - 10, top + row.height / 2 + (i - (lines.length - 1) / 2) * 15, GUTTER - 12));
      top += row.height + GAP;
    }
    this.axis(plot, top);
    this.move(this.frame ?? view.start);
  }

  axis({ context, x, colour, view }, top) {
    context.fillStyle = colour("soft");
    context.textBaseline = "top";
    const seconds = (frame) => view.secondsOf(Math.min(frame, view.numFrames - 1));
    const length = seconds(view.stop - 1) - seconds(view.start) || 1;
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800].find((s) => length / s <= this.plotWidth / 90) ?? 3600;
    for (let t = Math.ceil(seconds(view.start) / step) * step; t <= seconds(view.stop - 1) + 1e-6; t += step) {
      const at = x(view.frameAt(t));
      context.textAlign = at > GUTTER + this.plotWidth - 24 ? "right" : "center";
      context.fillText(clock(t), at, top);
    }
  }

  /** Moves the cursor to a frame; fast, as nothing else is drawn again. */
  move(frame) {
    this.frame = frame;
    if (!this.view) return;
    const { start, stop, boundary } = this.view;
    const context = sized(this.overlay, this.plotWidth + GUTTER, this.height);
    const x = (at) => GUTTER + ((at - start) / (stop - start)) * this.plotWidth;
    const style = getComputedStyle(document.documentElement);
    context.strokeStyle = context.fillStyle = style.getPropertyValue("--playhead").trim();
    if (boundary) {
      context.globalAlpha = 0.18;
      context.fillRect(x(boundary.start), 0, x(boundary.stop) - x(boundary.start), this.height - 18);
      context.globalAlpha = 1;
      context.lineWidth = 2;
      for (const edge of [boundary.start, boundary.stop]) line(context, x(edge), 0, x(edge), this.height - 18);
    }
    if (frame >= start && frame < stop) {
      context.lineWidth = 1.5;
      line(context, x(frame + 0.5), 0, x(frame + 0.5), this.height - 16);
    }
  }
}

const sized = (canvas, width, height) => {
  const ratio = devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.clearRect(0, 0, width, height);
  return context;
};

const line = (context, x0, y0, x1, y1) => {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
};

const rowsOf = (view, colour) => {
  const rows = [{ name: "labels", height: 22, draw: ribbon(view.labels, view.classes) }];
  if (view.reviewed) rows.push({ name: "as reviewed", height: 22, draw: ribbon(view.reviewed, view.classes) });
  rows.push({ name: "flags", height: 11, draw: spans(view.flags, colour("flag"), view.current) });
  if (view.known.length) rows.push({ name: "known errors", height: 9, draw: spans(view.known, colour("truth")) });
  const score = [];
  if (view.before) score.push({ values: view.before, colour: colour("old"), dash: [4, 3], width: 1.4 });
  score.push({ values: view.score, colour: colour("curve"), dash: [], width: 1.8 });
  rows.push({ name: "suspicion", height: 104, draw: curves(score, view.threshold, true) });
  const palette = ["second", "third", "fourth", "flag"];
  const lines = view.csl.map((one, i) => ({ ...one, colour: colour(palette[i % 4]), dash: i ? [5, 3] : [], width: 1.5 }));
  rows.push({ name: "CSL by scorer", height: 80, draw: curves(lines, null, false) });
  if (view.losses) rows.push({ name: "loss by\ncheckpoint", height: 76, draw: heatmap(view.losses) });
  return rows;
};

const ribbon = (runs, classes) => ({ context, x, view }, top, height) => {
  for (const [start, stop, label] of runs) {
    if (stop <= view.start || start >= view.stop) continue;
    const [a, b] = [x(Math.max(start, view.start)), x(Math.min(stop, view.stop))];
    const fill = label < 0 ? "transparent" : classes[label].colour;
    context.fillStyle = fill;
    context.fillRect(a, top, b - a, height);
    context.fillStyle = "#ffffff";
    context.fillRect(b - 0.5, top, 1, height);
    const name = label < 0 ? "" : classes[label].name;
    if (name && context.measureText(name).width + 8 < b - a) {
      context.fillStyle = isLight(fill) ? "#111" : "#fff";
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillText(name, a + 5, top + height / 2 + 0.5);
    }
  }
};

const isLight = (hex) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140;
};

const spans = (list, fill, current = null) => ({ context, x, left, width, colour, view }, top, height) => {
  context.fillStyle = colour("grid");
  context.fillRect(left, top, width, height);
  for (const span of list) {
    if (span.stop <= view.start || span.start >= view.stop) continue;
    const [a, b] = [x(Math.max(span.start, view.start)), x(Math.min(span.stop, view.stop))];
    const isCurrent = current && span.start === current.start && span.stop === current.stop;
    context.globalAlpha = !current || isCurrent ? 1 : 0.5;
    context.fillStyle = fill;
    context.fillRect(a, top, Math.max(2, b - a), height);
    context.globalAlpha = 1;
  }
};

const curves = (list, threshold, shaded) => ({ context, x, left, width, colour, view }, top, height) => {
  const known = list.flatMap((one) => one.values).filter((value) => value != null);
  const marks = threshold == null ? [0] : [0, threshold];
  const low = known.reduce((a, b) => Math.min(a, b), Math.min(...marks));
  const high = known.reduce((a, b) => Math.max(a, b), Math.max(...marks));
  const room = (high - low) * 1.08 || 1;
  // Names are above the lines, not on them.
  const head = list.some((one) => one.name) ? 18 : 0;
  const y = (value) => top + head + (height - head) * (1 - (value - low) / room);
  context.strokeStyle = colour("grid");
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
  if (shaded) {
    context.fillStyle = colour("shade");
    const { start, stop } = view.current;
    context.fillRect(x(start), top, x(stop) - x(start), height);
  }
  if (low < 0) line(context, left, y(0), left + width, y(0));
  for (const one of list) {
    context.strokeStyle = one.colour;
    context.lineWidth = one.width;
    context.setLineDash(one.dash);
    context.beginPath();
    let isDown = false;
    one.values.forEach((value, i) => {
      if (value == null) {
        isDown = false;
        return;
      }
      const at = left + ((i + 0.5) / one.values.length) * width;
      if (isDown) context.lineTo(at, y(value));
      else context.moveTo(at, y(value));
      isDown = true;
    });
    context.stroke();
  }
  context.setLineDash([]);
  context.textBaseline = "top";
  context.textAlign = "right";
  context.fillStyle = colour("soft");
  context.fillText(high.toFixed(1), left + width - 4, top + 3);
  if (threshold != null) {
    context.strokeStyle = context.fillStyle = colour("flag");
    context.setLineDash([7, 4]);
    line(context, left, y(threshold), left + width, y(threshold));
    context.setLineDash([]);
    context.textAlign = "left";
    context.textBaseline = "bottom";
    context.fillText(`threshold ${threshold.toFixed(2)}`, left + 5, y(threshold) - 2);
  }
  context.textAlign = "left";
  context.textBaseline = "top";
  let at = left + 5;
  for (const one of list.filter((each) => each.name)) {
    context.fillStyle = one.colour;
    context.fillText(one.name, at, top + 3);
    at += context.measureText(one.name).width + 14;
  }
};

const shade = (share) => {
  const at = Math.min(1, Math.max(0, share)) * (CIVIDIS.length - 1);
  const i = Math.min(CIVIDIS.length - 2, Math.floor(at));
  return CIVIDIS[i].map((channel, c) => channel + (CIVIDIS[i + 1][c] - channel) * (at - i));
};

const heatmap = ({ shape, values }) => ({ context, left, width, view }, top, height) => {
  const [rows, columns] = shape;
  const picture = new ImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) {
    const [r, g, b] = shade((Number.isNaN(values[i]) ? 0 : values[i]) / view.highestLoss);
    picture.data.set([r, g, b, 255], 4 * i);
  }
  const canvas = new OffscreenCanvas(columns, rows);
  canvas.getContext("2d").putImageData(picture, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, left, top, width, height);
};

/** The loss of the brightest colour: the 99th percentile, so that one frame does not darken all others. */
export const highestLoss = ({ values }) => {
  const known = [...values].filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  return known[Math.floor(0.99 * (known.length - 1))] || 1;
};
