// The rows of the timeline: each is a name, a height and a function that draws it.

const CIVIDIS = [[0, 34, 78], [65, 77, 107], [124, 123, 120], [188, 175, 111], [254, 232, 56]];

/** Rows of a view, from the top. The row with `isEditable` has edges that can be dragged. */
export const rowsOf = (view, colour) => {
  const rows = [{ name: "labels", height: 22, draw: ribbon(view.labels), isEditable: !view.changed }];
  if (view.changed) {
    rows.push({ name: view.changedName, height: 22, draw: ribbon(view.changed, { proposed: view.isProposal }), isEditable: true });
  }
  if (view.predicted) rows.push({ name: "models say", height: 14, draw: ribbon(view.predicted, { thin: true }) });
  rows.push({ name: "flags", height: 10, draw: spans(view.flags, colour("flag"), view.current) });
  if (view.known.length) rows.push({ name: "known errors", height: 9, draw: spans(view.known, colour("truth")) });
  if (!view.curves) return rows;
  const { curves } = view;
  const score = [];
  if (curves.before) score.push({ values: curves.before, colour: colour("old"), dash: [4, 3], width: 1.4 });
  score.push({ values: curves.score, colour: colour("curve"), dash: [], width: 1.8 });
  rows.push({ name: "suspicion", height: 92, draw: lines(score, curves, view.threshold, true) });
  const palette = ["second", "third", "fourth", "flag"];
  const csl = curves.csl.map((one, i) => ({ ...one, colour: colour(palette[i % 4]), dash: i ? [5, 3] : [], width: 1.5 }));
  rows.push({ name: "CSL by scorer", height: 72, draw: lines(csl, curves, null, false) });
  rows.push({ name: "loss by\ncheckpoint", height: 66, draw: heatmap(curves) });
  return rows;
};

export const line = (context, x0, y0, x1, y1) => {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
};

const ribbon = (runs, { thin = false, proposed = false } = {}) => ({ context, x, view, colour }, top, height) => {
  for (const [start, stop, label] of runs) {
    if (stop <= view.start || start >= view.stop) continue;
    const [a, b] = [x(Math.max(start, view.start)), x(Math.min(stop, view.stop))];
    const cls = view.classes[label];
    const fill = cls ? cls.colour : "transparent";
    context.fillStyle = fill;
    context.fillRect(a, top, b - a, height);
    context.fillStyle = colour("card");
    context.fillRect(b - 0.5, top, 1, height);
    const name = cls?.name ?? "";
    if (name && context.measureText(name).width + 8 < b - a && height > 12) {
      context.fillStyle = isLight(fill) ? "#111" : "#fff";
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillText(name, a + 5, top + height / 2 + 0.5);
    }
  }
  if (!proposed) return;
  // A frame of dashes around what would change, so that a proposal is not taken for a decision.
  context.strokeStyle = colour("ink");
  context.lineWidth = 1.5;
  context.setLineDash([4, 3]);
  for (const { start, stop } of view.changes) {
    if (stop > view.start && start < view.stop) context.strokeRect(x(start), top + 1, x(stop) - x(start), height - 2);
  }
  context.setLineDash([]);
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

const lines = (list, range, threshold, shaded) => ({ context, x, left, width, colour, view }, top, height) => {
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
    const step = (range.stop - range.start) / one.values.length;
    one.values.forEach((value, i) => {
      if (value == null) {
        isDown = false;
        return;
      }
      const at = x(range.start + (i + 0.5) * step);
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

const pictures = new WeakMap(); // losses and their picture, as panning draws the same ones often

const heatmap = ({ losses, highestLoss: highest, start, stop }) => ({ context, x }, top, height) => {
  if (!pictures.has(losses)) {
    const [rows, columns] = losses.shape;
    const picture = new ImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
      const [r, g, b] = shade((Number.isNaN(losses.values[i]) ? 0 : losses.values[i]) / highest);
      picture.data.set([r, g, b, 255], 4 * i);
    }
    const canvas = new OffscreenCanvas(columns, rows);
    canvas.getContext("2d").putImageData(picture, 0, 0);
    pictures.set(losses, canvas);
  }
  context.imageSmoothingEnabled = false;
  context.drawImage(pictures.get(losses), x(start), top, x(stop) - x(start), height);
};

/** The loss of the brightest colour: the 99th percentile, so that one frame does not darken all others. */
export const highestLoss = ({ values }) => {
  const known = [...values].filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  return known[Math.floor(0.99 * (known.length - 1))] || 1;
};
