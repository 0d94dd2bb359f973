// The timeline: labels, predictions, flags, scores and losses of the same frames, on a canvas. The wheel
// zooms, Shift or a drag on the axis pans, a drag on an edge of the labels moves it.

import { clock } from "./text.js";
import { line, rowsOf } from "./timeline_rows.js";

const GUTTER = 96;
const GAP = 6;
const AXIS = 18;
const EDGE_PIXELS = 6;
const ZOOM_STEP = 1.0015;

export class Timeline {
  /** `onSeek(frame)`, `onView(start, stop)`, `onEdge(frame, phase, event)`; `edges()` gives frames of edges. */
  constructor(drawing, cursor, { onSeek, onView, onEdge, edges }) {
    Object.assign(this, { drawing, overlay: cursor, onSeek, onView, onEdge, edges });
    cursor.addEventListener("pointerdown", (event) => this.press(event));
    cursor.addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel"]) cursor.addEventListener(name, (event) => this.release(event));
    cursor.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  place(event) {
    const box = this.overlay.getBoundingClientRect();
    return { x: event.clientX - box.left - GUTTER, y: event.clientY - box.top };
  }

  /** The exact place in frames below a pixel. */
  frameAt(x) {
    const { start, stop } = this.view;
    return start + (x / this.plotWidth) * (stop - start);
  }

  pixels(frames) {
    return (frames / (this.view.stop - this.view.start)) * this.plotWidth;
  }

  /** The edge below the pointer, if it is on the row whose edges can be dragged. */
  edgeAt({ x, y }) {
    const row = this.editable;
    if (!row || y < row.top || y > row.top + row.height) return null;
    const at = this.frameAt(x);
    const near = this.edges().filter((edge) => Math.abs(this.pixels(edge - at)) <= EDGE_PIXELS);
    return near.sort((a, b) => Math.abs(a - at) - Math.abs(b - at))[0] ?? null;
  }

  press(event) {
    if (!this.view || event.button > 1) return;
    this.overlay.setPointerCapture(event.pointerId);
    const place = this.place(event);
    const edge = this.edgeAt(place);
    if (edge != null) {
      this.gesture = "edge";
      this.onEdge(edge, "start", event);
    } else if (place.y > this.height - AXIS || event.button === 1) {
      this.gesture = "pan";
      this.grabbed = this.frameAt(place.x);
    } else {
      this.gesture = "seek";
      this.seekTo(place);
    }
  }

  drag(event) {
    if (!this.view) return;
    const place = this.place(event);
    if (!this.gesture) {
      const isAxis = place.y > this.height - AXIS;
      this.overlay.style.cursor = this.edgeAt(place) != null ? "ew-resize" : isAxis ? "grab" : "crosshair";
    } else if (this.gesture === "edge") this.onEdge(Math.round(this.frameAt(place.x)), "move", event);
    else if (this.gesture === "pan") this.pan(this.grabbed - this.frameAt(place.x));
    else this.seekTo(place);
  }

  release(event) {
    if (this.gesture === "edge") this.onEdge(Math.round(this.frameAt(this.place(event).x)), "end", event);
    this.gesture = null;
  }

  wheel(event) {
    if (!this.view) return;
    event.preventDefault();
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.shiftKey || sideways) this.pan(this.frames(sideways ? event.deltaX : event.deltaY));
    else this.zoom(ZOOM_STEP ** event.deltaY, this.frameAt(this.place(event).x));
  }

  frames(pixels) {
    return (pixels / this.plotWidth) * (this.view.stop - this.view.start);
  }

  pan(frames) {
    const { start, stop, numFrames } = this.view;
    const by = Math.max(-start, Math.min(numFrames - stop, frames));
    this.onView(start + by, stop + by);
  }

  /** Zooms around a frame, which stays below the pointer. */
  zoom(factor, around) {
    const { start, stop, numFrames } = this.view;
    const least = Math.min(numFrames, 12);
    const length = Math.max(least, Math.min(numFrames, (stop - start) * factor));
    const first = around - ((around - start) / (stop - start)) * length;
    const kept = Math.max(0, Math.min(numFrames - length, first));
    this.onView(kept, kept + length);
  }

  seekTo({ x }) {
    const { start, stop } = this.view;
    this.onSeek(Math.min(stop - 1, Math.max(start, Math.floor(this.frameAt(x)))));
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
    this.height = rows.reduce((sum, row) => sum + row.height + GAP, AXIS);
    const context = sized(this.drawing, width, this.height);
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    const x = (frame) => GUTTER + ((frame - view.start) / (view.stop - view.start)) * this.plotWidth;
    const plot = { context, x, left: GUTTER, width: this.plotWidth, colour, view };
    let top = 2;
    this.editable = null;
    for (const row of rows) {
      if (row.isEditable) this.editable = { top, height: row.height };
      context.save();
      context.beginPath();
      context.rect(GUTTER - 1, top - 2, this.plotWidth + 2, row.height + 4);
      context.clip();
      row.draw(plot, top, row.height);
      context.restore();
      context.fillStyle = colour("soft");
      context.textAlign = "right";
      context.textBaseline = "middle";
      row.name.split("\n").forEach((text, i, texts) =>
        context.fillText(text, GUTTER - 10, top + row.height / 2 + (i - (texts.length - 1) / 2) * 15, GUTTER - 12));
      top += row.height + GAP;
    }
    this.axis(plot, top);
    this.move(this.at ?? view.start);
  }

  axis({ context, x, colour, view }, top) {
    context.fillStyle = colour("soft");
    context.textBaseline = "top";
    const first = view.secondsOf(Math.floor(view.start));
    const last = view.secondsOf(Math.ceil(view.stop));
    const length = last - first || 1;
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800].find((s) => length / s <= this.plotWidth / 90) ?? 3600;
    for (let t = Math.ceil(first / step) * step; t <= last + 1e-6; t += step) {
      const at = x(view.placeOf(t));
      context.textAlign = at > GUTTER + this.plotWidth - 24 ? "right" : "center";
      if (at >= GUTTER - 1) context.fillText(clock(t), at, top);
    }
  }

  /** Moves the cursor to a place in frames; fast, as nothing else is drawn again. */
  move(at) {
    this.at = at;
    if (!this.view) return;
    const { start, stop, marks } = this.view;
    const context = sized(this.overlay, this.plotWidth + GUTTER, this.height);
    const x = (frame) => GUTTER + ((frame - start) / (stop - start)) * this.plotWidth;
    const style = getComputedStyle(document.documentElement);
    const isSeen = (frame) => frame >= start && frame <= stop;
    context.strokeStyle = context.fillStyle = style.getPropertyValue("--playhead").trim();
    if (marks.span) {
      context.globalAlpha = 0.18;
      const [a, b] = [Math.max(start, marks.span.start), Math.min(stop, marks.span.stop)];
      context.fillRect(x(a), 0, Math.max(0, x(b) - x(a)), this.height - AXIS);
      context.globalAlpha = 1;
    }
    context.lineWidth = 2;
    for (const edge of marks.edges.filter(isSeen)) {
      line(context, x(edge), 0, x(edge), this.height - AXIS);
      context.fillRect(x(edge) - 4, 0, 8, 6);
    }
    if (isSeen(at)) {
      context.lineWidth = 1.5;
      line(context, x(at), 0, x(at), this.height - AXIS + 2);
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
