// The review page: which span is looked at, what was decided, and the keys.

import { Refused, auditApi, audits, renewSession, setToken } from "./api.js";
import { Player } from "./player.js";
import { Queue } from "./queue.js";
import { ago, clock, decisionWords, element, percent, score, swatch } from "./text.js";
import { Timeline, highestLoss } from "./timeline.js";

const POLL_MS = 4000;
const CONTEXT_SHARE = 3;
const LEAST_CONTEXT_SECONDS = 4;

const $ = (id) => document.getElementById(id);

const state = {
  api: null,
  facts: null,
  reviewer: localStorage.getItem("csl-reviewer"),
  flag: null,
  index: -1,
  video: null,
  videoFlags: [],
  zoomed: true,
  moved: null,
  undo: [],
  last: 0,
  drawn: 0,
  baseline: null,
};

// Start ---------------------------------------------------------------------------------------

const place = () => new URLSearchParams(location.hash.slice(1));

const start = async () => {
  const given = place().get("token");
  if (given) history.replaceState(null, "", location.pathname);
  try {
    if (given) await setToken(given);
    else await renewSession();
    await openFirst();
  } catch (error) {
    if (error.status !== 401) throw error;
    await setToken(await askText("token")).catch(() => {});
    await start();
  }
};

const openFirst = async () => {
  const found = await audits();
  const ready = found.filter((audit) => audit.ready && audit.flags != null);
  $("audit").replaceChildren(...found.map((audit) => {
    const option = element("option", { value: audit.id }, audit.id);
    option.disabled = !ready.includes(audit);
    return option;
  }));
  if (!ready.length) {
    showEmpty(found.map((audit) => audit.note ?? `${audit.id} has no flags yet.`).join(" ") || "No audit is served.");
    return;
  }
  if (!state.reviewer) await askReviewer();
  $("reviewer").textContent = state.reviewer;
  const wanted = place().get("audit");
  await openAudit(ready.some((audit) => audit.id === wanted) ? wanted : ready[0].id);
};

const openAudit = async (id) => {
  $("audit").value = id;
  state.api = auditApi(id);
  state.facts = await state.api.facts();
  state.flag = state.video = null;
  state.undo = [];
  $("filter-label").replaceChildren(element("option", { value: "" }, "any label"),
    ...state.facts.classes.map(({ name }) => element("option", { value: name }, name)));
  $("legend").replaceChildren(...state.facts.classes.map(({ name, colour }, i) =>
    element("span", {}, swatch(colour), i < 9 ? element("kbd", {}, `${i + 1}`) : "", name)));
  const rank = Number(place().get("rank"));
  await queue.load();
  state.last = await newestReview();
  await showProgress();
  await queue.select(Math.max(0, await indexOfRank(rank)));
};

const newestReview = async () => {
  let after = 0;
  for (;;) {
    const { reviews, last } = await state.api.reviews(after);
    after = last;
    if (reviews.length < 1000) return last;
  }
};

/** Ranks count up in the unfiltered queue. */
const indexOfRank = async (rank) => (rank >= 1 && (await queue.at(rank - 1))?.rank === rank ? rank - 1 : 0);

const showEmpty = (sentence) => {
  $("main").hidden = true;
  $("empty").hidden = false;
  $("empty").textContent = sentence;
};

// Queue ---------------------------------------------------------------------------------------

const filters = () => ({
  text: $("filter-text").value.trim(),
  state: $("filter-state").value,
  kind: $("filter-kind").value,
  label: $("filter-label").value,
  min_score: $("filter-score").value,
});

const colourOf = (name) => state.facts.classes.find((one) => one.name === name)?.colour ?? "transparent";

const queue = new Queue($("list"), $("spacer"), {
  fetchPage: async (offset, limit) => {
    const answer = await state.api.flags({ ...filters(), offset, limit });
    const all = state.facts.num_flags;
    $("count").textContent = answer.total === all ? `${all} spans, worst first` : `${answer.total} of ${all} spans`;
    return answer;
  },
  colourOf,
  onSelect: (flag, index) => showFlag(flag, index),
  onClick: (index) => act(() => queue.select(index)),
});

let typing = null;
$("filters").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => guarded(async () => {
    await queue.load();
    if (!(await queue.select(0))) showEmpty("No span fits these filters.");
  }), 200);
});
$("filters").addEventListener("submit", (event) => event.preventDefault());

// One span ------------------------------------------------------------------------------------

const player = new Player(
  { video: $("video"), picture: $("picture"), noPicture: $("no-picture"), note: $("media-note") },
  {
    onMove: (frame) => {
      timeline.move(frame);
      showPlace(frame);
    },
    onState: (playing) => $("play").replaceChildren(playing ? "Stop " : "Play ", element("kbd", {}, "Space")),
  },
);
const timeline = new Timeline($("drawing"), $("cursor"), { onSeek: (frame) => player.seek(frame) });

const showFlag = async (flag, index) => {
  player.stop();
  Object.assign(state, { flag, index, moved: null });
  $("empty").hidden = true;
  $("main").hidden = false;
  history.replaceState(null, "", `#${new URLSearchParams({ audit: state.facts.id, rank: flag.rank })}`);
  showHeading(flag);
  showPanel();
  const isNew = state.video?.video !== flag.video;
  const [facts, { flags }] = await Promise.all([
    isNew ? state.api.video(flag.video) : state.video,
    state.api.flags({ video: flag.video, limit: 1000 }),
  ]);
  if (state.flag !== flag) return; // the reviewer has gone on
  state.video = facts;
  state.videoFlags = flags;
  takeReviews(flags.find((one) => one.rank === flag.rank));
  if (isNew) {
    player.open(facts, {
      media: state.api.mediaUrl(flag.video),
      picture: (frame) => state.api.pictureUrl(flag.video, frame),
    });
  }
  player.seek(flag.start);
  showPanel();
  guarded(draw);
};

const takeReviews = (fresh) => {
  if (!fresh) return;
  queue.update((flag) => flag.rank === fresh.rank,
    (flag) => Object.assign(flag, { state: fresh.state, reviews: fresh.reviews }));
};

const showHeading = (flag) => {
  const frames = flag.stop - flag.start;
  $("span-title").replaceChildren(`${flag.video} `,
    element("small", {}, `${clock(flag.start_seconds)}–${clock(flag.stop_seconds)}, ${frames} frames, rank ${flag.rank} `),
    element("span", { class: `kind ${flag.kind}` }, flag.kind));
  $("span-title").dataset.rank = flag.rank;
  $("why").textContent = flag.why;
  $("annotated").replaceChildren(swatch(colourOf(flag.label)), flag.label);
  $("suggested").replaceChildren(swatch(colourOf(flag.suggested)), `${flag.suggested} `,
    element("span", { class: "soft" }, percent(flag.suggested_probability)));
  $("accept-text").textContent = `It is ${flag.suggested}`;
};

const mine = (flag) => flag.reviews.find((review) => review.reviewer === state.reviewer);

const showPanel = () => {
  const { flag } = state;
  const own = mine(flag);
  const pressed = {
    accept: own?.decision === "wrong" && own.label === flag.suggested,
    correct: own?.decision === "correct",
    other: own?.decision === "wrong" && own.label !== flag.suggested,
    boundary: own?.decision === "boundary" || Boolean(state.moved),
    unsure: own?.decision === "unsure",
  };
  for (const [id, value] of Object.entries(pressed)) $(id).setAttribute("aria-pressed", value);
  $("history").replaceChildren(...flag.reviews.map((review) =>
    element("li", {}, element("b", {}, review.reviewer === state.reviewer ? "you" : review.reviewer),
      `: ${decisionWords(review)} `, element("span", { class: "soft" }, ago(review.when)),
      review.comment ? `, “${review.comment}”` : "")));
  $("boundary-help").hidden = !state.moved;
  if (state.moved) {
    const { start, stop, label } = state.moved;
    $("boundary-help").replaceChildren(`${label} from frame ${start} to ${stop - 1}. `, element("kbd", {}, "["), " ",
      element("kbd", {}, "]"), " put start and end at the cursor, a digit changes the label, ",
      element("kbd", {}, "Enter"), " keeps it, ", element("kbd", {}, "Esc"), " drops it.");
  }
};

const showPlace = (frame) => {
  if (!state.video) return;
  $("clock").textContent = `${clock(player.secondsOf(frame))} · frame ${frame}`;
  const run = reviewedRuns().find(([a, b]) => frame >= a && frame < b);
  const one = run && run[2] >= 0 ? state.facts.classes[run[2]] : null;
  $("here").replaceChildren(...(one ? [swatch(one.colour), one.name] : ["unlabelled"]));
};

// What decisions change -----------------------------------------------------------------------

/** What the last decision on each span of the video changes; a boundary in the making counts. */
const edits = () => {
  const last = state.videoFlags.map((flag) => {
    const own = flag.rank === state.flag.rank ? state.flag : flag;
    return own.reviews.at(-1);
  }).filter((review) => review?.label).sort((a, b) => a.number - b.number);
  const made = last.map((review) => ({
    start: review.new_start ?? review.start,
    stop: review.new_stop ?? review.stop,
    label: review.label,
  }));
  if (!state.moved) return made;
  const { start, stop, label } = state.moved;
  const others = last.filter((r) => r.start !== state.flag.start || r.stop !== state.flag.stop);
  return [...made.filter((_, i) => others.includes(last[i])), { start, stop, label }];
};

/** The label runs of the video with edits made. */
const reviewedRuns = () => {
  let runs = state.video.labels;
  for (const edit of edits()) {
    const id = state.facts.classes.findIndex((one) => one.name === edit.label);
    const kept = runs.flatMap(([a, b, label]) => [
      ...(a < edit.start ? [[a, Math.min(b, edit.start), label]] : []),
      ...(b > edit.stop ? [[Math.max(a, edit.stop), b, label]] : []),
    ]);
    runs = [...kept, [edit.start, edit.stop, id]].sort((x, y) => x[0] - y[0]);
  }
  return runs;
};

const shownRange = () => {
  const { flag, video } = state;
  if (!state.zoomed) return [0, video.num_frames];
  const context = Math.max(CONTEXT_SHARE * (flag.stop - flag.start), Math.round(LEAST_CONTEXT_SECONDS * video.fps));
  return [Math.max(0, flag.start - context), Math.min(video.num_frames, flag.stop + context)];
};

let asking = null;

/** Fetches the curves under the labels as they are now, and draws them. */
const draw = async () => {
  const { flag, video, facts, api } = state;
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const [from, to] = shownRange();
  const made = edits();
  const body = { video: flag.video, start: from, stop: to, columns: timeline.columns };
  const one = (more) => api.scores({ ...body, ...more }, signal);
  const key = JSON.stringify(body);
  try {
    if (state.baseline?.key !== key) {
      state.baseline = { key, score: (await one({ names: ["deciding"] })).scores.deciding };
    }
    const [deciding, losses, ...csl] = await Promise.all([
      one({ names: ["deciding"], edits: made, of: [flag.start, flag.stop] }),
      api.losses({ ...body, edits: made, columns: Math.min(600, body.columns) }, signal),
      ...facts.scorers.map((scorer) => one({ names: ["csl"], scorer, edits: made })),
    ]);
    if (state.flag !== flag) return;
    if (!made.length || state.baseline.highest === undefined) state.baseline.highest = highestLoss(losses);
    timeline.draw({
      start: from,
      stop: to,
      numFrames: video.num_frames,
      secondsOf: (frame) => player.secondsOf(frame),
      frameAt: (seconds) => player.frameAt(seconds),
      clock,
      classes: facts.classes,
      labels: video.labels,
      reviewed: made.length ? reviewedRuns() : null,
      flags: state.videoFlags,
      known: video.known_errors,
      current: flag,
      moved: state.moved,
      score: deciding.scores.deciding,
      before: made.length ? state.baseline.score : null,
      threshold: video.threshold,
      scoreName: "suspicion",
      csl: facts.scorers.map((name, i) => ({ name, values: csl[i].scores.csl })),
      losses,
      highestLoss: state.baseline.highest,
    });
    showChange(deciding.change, made.length > 0);
    showPlace(player.frame);
    $("zoom-text").textContent = state.zoomed ? "whole video" : "around the span";
    document.body.dataset.drawn = ++state.drawn;
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
};

const showChange = ({ before, after, threshold }, changed) => {
  const place = $("change");
  place.dataset.before = before;
  place.dataset.after = after;
  if (!changed || Math.abs(after - before) < 0.005) {
    place.replaceChildren("score ", element("b", {}, score(before)),
      element("span", { class: "soft" }, `, threshold ${score(threshold)}`));
    return;
  }
  const below = after <= threshold ? "below the threshold now" : `still above ${score(threshold)}`;
  place.replaceChildren("score ", score(before), " → ",
    element("b", { class: after < before ? "fell" : "rose" }, score(after)),
    element("span", { class: "soft" }, `, ${below}`));
};

// Decisions -----------------------------------------------------------------------------------

const newKey = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

const save = async (flag, values) => {
  const { video, start, stop } = flag;
  const review = await state.api.decide({
    key: newKey(), video, start, stop, reviewer: state.reviewer, comment: $("comment").value.trim(), ...values,
  });
  $("comment").value = "";
  apply([review]);
  return review;
};

/** Makes decisions visible: in the queue, in the panel, and in the curves of their video. */
const apply = (reviews) => {
  let touched = false;
  for (const review of reviews) {
    const fits = (flag) => flag.video === review.video && flag.start === review.start && flag.stop === review.stop;
    const change = (flag) => {
      if (flag.reviews.some((one) => one.number >= review.number && one.reviewer === review.reviewer)) return;
      flag.reviews = flag.reviews.filter((one) => one.reviewer !== review.reviewer);
      if (review.decision !== "withdrawn") flag.reviews = [...flag.reviews, review];
      flag.state = stateOf(flag.reviews);
    };
    queue.update(fits, change);
    state.videoFlags.filter(fits).forEach(change);
    if (state.flag && fits(state.flag)) change(state.flag);
    touched ||= review.video === state.flag?.video;
  }
  if (touched) showPanel();
  return touched;
};

const stateOf = (reviews) => {
  if (!reviews.length) return "undecided";
  const sure = reviews.filter((review) => review.decision !== "unsure");
  const kinds = new Set(sure.map((r) => [r.decision, r.label, r.new_start, r.new_stop].join("|")));
  return kinds.size > 1 ? "disputed" : "decided";
};

const decide = async (values) => {
  const { flag } = state;
  const earlier = mine(flag);
  const review = await save(flag, values);
  state.undo.push({ flag, index: state.index, earlier });
  state.moved = null;
  showPanel();
  toast(`${flag.video} ${clock(flag.start_seconds)}: ${decisionWords(review)}`);
  guarded(draw);
  guarded(showProgress);
};

/** Takes the last decision back: what held before holds again. */
const undo = async () => {
  const last = state.undo.pop() ?? (mine(state.flag) ? { flag: state.flag, index: state.index } : null);
  if (!last) return toast("There is nothing to undo.");
  const { decision, label, new_start, new_stop, comment } = last.earlier ?? { decision: "withdrawn" };
  await save(last.flag, last.earlier ? { decision, label, new_start, new_stop, comment } : { decision });
  if (state.flag !== last.flag) await queue.select(last.index);
  toast(last.earlier ? `Back to: ${decisionWords(last.earlier)}` : "Decision withdrawn");
  guarded(draw);
  guarded(showProgress);
};

const chooseLabel = async (label) => {
  if (!state.moved) return decide(label === state.flag.label ? { decision: "correct" } : { decision: "wrong", label });
  state.moved.label = label;
  showPanel();
  guarded(draw);
};

const toggleBoundary = () => {
  const own = mine(state.flag);
  state.moved = state.moved ? null : {
    start: own?.new_start ?? state.flag.start,
    stop: own?.new_stop ?? state.flag.stop,
    label: own?.label ?? state.flag.suggested,
  };
  showPanel();
  guarded(draw);
};

const moveEdge = (edge) => {
  if (!state.moved) toggleBoundary();
  if (edge === "start") state.moved.start = Math.min(player.frame, state.moved.stop - 1);
  else state.moved.stop = Math.max(player.frame + 1, state.moved.start + 1);
  showPanel();
  guarded(draw);
};

const keepBoundary = () => {
  const { start, stop, label } = state.moved;
  const same = start === state.flag.start && stop === state.flag.stop;
  return decide(same ? { decision: "wrong", label } : { decision: "boundary", label, new_start: start, new_stop: stop });
};

const goOn = async () => {
  const index = await queue.nextUndecided(state.index);
  if (index < 0) toast("Every span in this list is reviewed.");
  else await queue.select(index);
};

// Progress, and what others do ----------------------------------------------------------------

const showProgress = async () => {
  const found = await state.api.progress();
  const share = (count) => `${(100 * count) / Math.max(1, found.total)}%`;
  for (const name of ["wrong", "correct", "unsure"]) $("bar").querySelector(`.${name}`).style.width = share(found[name]);
  $("bar").setAttribute("aria-valuemax", found.total);
  $("bar").setAttribute("aria-valuenow", found.decided);
  const parts = [element("b", {}, `${found.decided} of ${found.total}`), " reviewed"];
  if (found.precision != null) {
    parts.push(" · ", element("b", {}, percent(found.precision)), ` of flags were wrong labels (95 %: ${percent(found.precision_low)} to ${percent(found.precision_high)})`);
  }
  if (found.unsure) parts.push(` · ${found.unsure} unsure`);
  if (found.disputed) parts.push(` · ${found.disputed} disputed`);
  $("progress-text").replaceChildren(...parts);
};

const poll = async () => {
  if (state.api && !document.hidden) {
    try {
      const { reviews, last } = await state.api.reviews(state.last);
      state.last = last;
      const fresh = reviews.filter((review) => review.revision === state.facts.revision);
      if (fresh.length) {
        const others = fresh.filter((review) => review.reviewer !== state.reviewer);
        const touched = apply(fresh);
        await showProgress();
        if (others.length && touched && !state.moved) await draw();
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  }
  setTimeout(poll, POLL_MS);
};

// Dialogs and words ---------------------------------------------------------------------------

const askText = (name) => new Promise((resolve) => {
  const dialog = $(`${name}-dialog`);
  dialog.addEventListener("close", () => resolve($(name).value.trim()), { once: true });
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.showModal();
  $(name).focus();
});

const askReviewer = async () => {
  $("name").value = state.reviewer ?? "";
  let name = "";
  while (!name) name = await askText("name");
  state.reviewer = name;
  localStorage.setItem("csl-reviewer", name);
  $("reviewer").textContent = name;
};

const chooser = {
  open() {
    $("label-text").value = "";
    this.fill();
    $("label-dialog").showModal();
  },
  fill() {
    const words = $("label-text").value.toLowerCase();
    const { flag, facts } = state;
    this.fitting = facts.classes.map((one, i) => ({ ...one, i })).filter(({ name }) => name.toLowerCase().includes(words));
    this.at = 0;
    $("label-list").replaceChildren(...this.fitting.map(({ name, colour, i }) => {
      const notes = name === flag.label ? "annotated" : name === flag.suggested ? "suggested" : "";
      const item = element("li", { role: "option" }, swatch(colour), name, element("span", { class: "soft" }, notes),
        i < 9 ? element("kbd", {}, `${i + 1}`) : "");
      item.addEventListener("click", () => this.pick(name));
      return item;
    }));
    this.mark();
  },
  mark() {
    [...$("label-list").children].forEach((item, i) => {
      item.setAttribute("aria-selected", i === this.at);
      if (i === this.at) item.scrollIntoView({ block: "nearest" });
    });
  },
  pick(name) {
    $("label-dialog").close();
    act(() => chooseLabel(name));
  },
  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.fitting.length) {
      event.preventDefault();
      this.at = (this.at + step + this.fitting.length) % this.fitting.length;
      this.mark();
    }
    const digit = /^[1-9]$/.test(event.key) && $("label-text").value === "" && state.facts.classes[event.key - 1];
    if (digit) {
      event.preventDefault();
      this.pick(digit.name);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      if (this.fitting.length) this.pick(this.fitting[this.at].name);
    }
  },
};
$("label-text").addEventListener("input", () => chooser.fill());
$("label-text").addEventListener("keydown", (event) => chooser.key(event));

let toasting = null;
const toast = (sentence, isBad = false) => {
  clearTimeout(toasting);
  $("toast").textContent = sentence;
  $("toast").className = `toast on${isBad ? " bad" : ""}`;
  toasting = setTimeout(() => { $("toast").className = "toast"; }, isBad ? 6000 : 2200);
};

/** Tells what a request was refused for; anything else is a mistake of this page, and is raised. */
const guarded = async (action) => {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
};

/** One after the other: a key that comes while a span is loaded or saved waits for that. */
let doing = Promise.resolve();
const act = (action) => {
  const done = doing.then(() => (isReady() ? guarded(action) : null));
  doing = done.catch(() => {});
};

// Keys and buttons ----------------------------------------------------------------------------

const step = (event, direction) => {
  player.stop();
  const frames = event.shiftKey ? Math.max(1, Math.round(state.video.fps)) : 1;
  player.seek(player.frame + direction * frames);
};

const ACTIONS = {
  a: () => decide({ decision: "wrong", label: state.flag.suggested }),
  c: () => decide({ decision: "correct" }),
  u: () => decide({ decision: "unsure" }),
  l: () => { chooser.open(); },
  b: toggleBoundary,
  "[": () => moveEdge("start"),
  "]": () => moveEdge("stop"),
  z: undo,
  m: () => $("comment").focus(),
  j: () => queue.select(state.index + 1),
  k: () => queue.select(state.index - 1),
  ArrowDown: () => queue.select(state.index + 1),
  ArrowUp: () => queue.select(state.index - 1),
  ArrowLeft: (event) => step(event, -1),
  ArrowRight: (event) => step(event, 1),
  Enter: () => (state.moved ? keepBoundary() : goOn()),
  Escape: () => state.moved && toggleBoundary(),
  " ": () => player.toggle(state.flag),
  v: () => {
    state.zoomed = !state.zoomed;
    guarded(draw);
  },
};

/** What takes the keyboard must do so before the next key comes; what it leads to waits its turn. */
const AT_ONCE = ["l", "m"];

const isReady = () => state.video && !$("main").hidden;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const { target } = event;
  if (target.matches("input, select, textarea")) {
    if (event.key === "Escape" || (event.key === "Enter" && target.id === "comment")) {
      target.blur();
      event.preventDefault();
    }
    return;
  }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (target.matches("button, a") && (key === "Enter" || key === " ")) return;
  if (key === "?") $("help-dialog").showModal();
  else if (key === "/") $("filter-text").focus();
  else if (isReady() && /^[1-9]$/.test(key) && state.facts.classes[key - 1]) {
    act(() => chooseLabel(state.facts.classes[key - 1].name));
  } else if (isReady() && AT_ONCE.includes(key)) ACTIONS[key](event);
  else if (isReady() && ACTIONS[key]) act(() => ACTIONS[key](event));
  else return;
  event.preventDefault();
});

const BUTTONS = {
  accept: "a", correct: "c", other: "l", boundary: "b", unsure: "u", undo: "z",
  previous: "k", next: "j", "go-on": "Enter", play: " ", zoom: "v",
};
for (const [id, key] of Object.entries(BUTTONS)) {
  $(id).addEventListener("click", (event) => {
    if (!isReady()) return;
    // Keys go on working as if the button had not been clicked.
    if (event.detail) $(id).blur();
    if (AT_ONCE.includes(key)) ACTIONS[key](event);
    else act(() => ACTIONS[key](event));
  });
}
$("help-button").addEventListener("click", () => $("help-dialog").showModal());
$("reviewer").addEventListener("click", () => guarded(async () => {
  await askReviewer();
  if (state.flag) showPanel();
}));
$("audit").addEventListener("change", () => guarded(() => openAudit($("audit").value)));

let resizing = null;
const redraw = () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => isReady() && guarded(draw), 150);
};
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

guarded(start);
setTimeout(poll, POLL_MS);
