// The dataset as a whole: certificate, conventions, what labels alone tell, and whether probabilities hold.

import { $, toast } from "./page.js";
import { showFlag } from "./span.js";
import { enqueue, state } from "./state.js";
import { clock, element, percent } from "./text.js";
import { applyFilters } from "./queue.js";

const SIDE = 190; // of the drawing, in its own units
const EDGE = 26;

const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

/** What was predicted (to the right) against what reviewers found (upwards), with 95 % intervals. */
const reliabilityDrawing = (points) => {
  const x = (share) => EDGE + share * (SIDE - EDGE - 6);
  const y = (share) => SIDE - EDGE - share * (SIDE - EDGE - 6);
  const words = points.map((p) => `${percent(p.predicted)} predicted, ${percent(p.found)} found in ${p.decided}`).join("; ");
  const ticks = [0, 0.5, 1].flatMap((share) => [
    svg("text", { x: x(share), y: SIDE - 10, class: "middle" }, percent(share)),
    svg("text", { x: EDGE - 3, y: y(share) + 3, class: "end" }, `${100 * share}`)]);
  return svg("svg", { viewBox: `0 0 ${SIDE + 60} ${SIDE}`, role: "img", "aria-label": words, class: "reliability" },
    svg("rect", { x: x(0), y: y(1), width: x(1) - x(0), height: y(0) - y(1), class: "frame" }),
    svg("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "diagonal" }),
    ...points.flatMap((p) => [
      svg("line", { x1: x(p.predicted), x2: x(p.predicted), y1: y(p.low), y2: y(p.high), class: "whisker" }),
      svg("circle", { cx: x(p.predicted), cy: y(p.found), r: 2 + Math.sqrt(p.decided) / 2 },
        svg("title", {}, `${percent(p.predicted)} predicted, ${percent(p.found)} found in ${p.decided} decisions`))]),
    ...ticks, svg("text", { x: x(0.5), y: SIDE - 1, class: "middle" }, "predicted"), svg("text", { x: x(1) + 5, y: y(1) + 8 }, "found"));
};

const showReliability = (points) => {
  $("reliability").replaceChildren(points.length ? reliabilityDrawing(points)
    : element("p", { class: "soft" }, "Flags without a decision say nothing yet. Here will stand how often flags of each probability were errors."));
};

const FLOOR = 0.8;

/** The interval of right seconds on a scale; positions are set by script, as the page allows no style in markup. */
const showGauge = ({ right, right_low: low, right_high: high, claim, judged }) => {
  $("certificate-gauge").hidden = !judged;
  const floor = Math.min(FLOOR, Math.floor(10 * low) / 10);
  const place = (share) => `${(100 * (Math.max(share, floor) - floor)) / (1 - floor)}%`;
  const range = element("i", { class: "range" });
  const point = element("i", { class: "point" });
  const mark = element("i", { class: "claim" });
  Object.assign(range.style, { left: place(low), right: `calc(100% - ${place(high)})` });
  point.style.left = place(right);
  mark.style.left = place(claim);
  $("certificate-gauge").replaceChildren(range, point, mark);
  $("certificate-gauge").title = `from ${percent(floor)} to 100 %; dashed: the claim`;
};

const showCertificate = (facts) => {
  const has = facts != null;
  $("certificate-text").textContent = has ? `${facts.sentence[0].toUpperCase()}${facts.sentence.slice(1)}.`
    : "How good are the labels? A random sample of segments, unflagged ones among them, tells, with an interval.";
  $("draw-sample").textContent = has ? "Draw more" : "Draw a sample";
  $("review-sample").hidden = !has;
  $("certificate-page").hidden = !facts?.judged;
  if (!has) {
    $("certificate-gauge").hidden = true;
    return;
  }
  if (facts.still_needed) $("sample-size").value = facts.still_needed;
  $("certificate-page").href = state.api.certificateUrl();
  showGauge(facts);
};

const showFinding = (finding) => {
  const likely = finding.probability == null ? "" : ` ${percent(finding.probability)} likely`;
  const words = [element("b", {}, `${finding.title}${finding.video ? `, ${finding.video}` : ""}`), likely, element("br"), finding.sentence];
  if (finding.video == null || finding.start_seconds == null) return element("li", {}, element("span", {}, ...words));
  const button = element("button", { type: "button" }, `${clock(finding.start_seconds)} show`);
  button.addEventListener("click", () => enqueue(() => showPlace(finding)));
  return element("li", {}, button, element("span", {}, ...words));
};

/** Shows the segment that a finding of lint is about. */
const showPlace = async ({ video, start_seconds: start }) => {
  const { flags } = await state.api.flags({ source: "segments", video, limit: 1000 });
  const wanted = flags.find((one) => one.start_seconds <= start + 0.01 && one.stop_seconds > start + 0.01);
  if (!wanted) return toast("This place is not among the audited videos.");
  $("dataset-dialog").close();
  return showFlag(wanted, -1);
};

export const showOverview = async () => {
  const certificate = state.facts.num_sampled ? state.api.certificate() : null;
  const [found, facts] = await Promise.all([state.api.overview(), certificate]);
  showCertificate(facts);
  showReliability(found.reliability);
  $("exchanges-box").hidden = !found.exchanges.length;
  $("exchanges").replaceChildren(...found.exchanges.map((one) => element("li", {}, one)));
  const none = element("li", {}, "None: no disagreement is the same in most videos.");
  $("conventions").replaceChildren(...(found.conventions.length ? found.conventions.map((one) => element("li", {}, one)) : [none]));
  $("flagged-annotators-box").hidden = !found.annotators.length;
  $("flagged-annotators").replaceChildren(...found.annotators.map((one) => element("tr", {}, element("th", { scope: "row" }, one.name),
    element("td", {}, one.videos), element("td", {}, one.hours.toFixed(1)), element("td", {}, one.flags),
    element("td", {}, one.hours ? (one.flags / one.hours).toFixed(1) : "–"))));
  const more = found.num_findings > found.findings.length ? `, the ${found.findings.length} surest here; csl lint lists all` : "";
  $("lint-count").textContent = found.num_findings ? `${found.num_findings} ${found.num_findings === 1 ? "finding" : "findings"}${more}.` : "Nothing looks odd by order, duration and names.";
  $("lint-findings").replaceChildren(...found.findings.map(showFinding));
  if (!$("dataset-dialog").open) $("dataset-dialog").showModal();
  $("dataset-title").focus();
};

const drawSample = async () => {
  const facts = await state.api.drawSample({ reviews: Number($("sample-size").value) });
  state.facts.num_sampled = facts.sampled;
  $("source-sample").hidden = $("source-sample").disabled = false;
  showCertificate(facts);
  toast(`${facts.sampled} segments are in the sample`);
};

const reviewSample = async () => {
  $("dataset-dialog").close();
  $("filter-source").value = "sample";
  await applyFilters();
};

export const listenToOverview = () => {
  $("dataset").addEventListener("click", () => enqueue(showOverview));
  $("draw-sample").addEventListener("click", () => enqueue(drawSample));
  $("review-sample").addEventListener("click", () => enqueue(reviewSample));
};
