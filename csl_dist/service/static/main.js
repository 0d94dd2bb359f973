// The review page: opens audits, listens to keys, and fetches the decisions of others.

import { RequestError, auditApi, auditFacts, audits, renewSession, setToken } from "./api.js";
import {
  changeBoundary, chooseLabel, decide, labelChooser, moveBoundaryEdge, saveBoundary, showReviews,
  startBoundary, undo,
} from "./actions.js";
import { askText } from "./dialogs.js";
import { listenToKeys } from "./keys.js";
import { $, showErrors, showMessage } from "./page.js";
import { hasOneLabel, showClasses, showProgress } from "./panel.js";
import { draw, moveCursor, player, showPanel, toggleZoom } from "./span.js";
import { enqueue, enqueueOnSpan, isSpanShown, state } from "./state.js";
import { element } from "./text.js";
import { applyFilters, queue, showNextUndecided } from "./queue.js";

const POLL_MS = 4000;
const TYPING_MS = 200;
const RESIZING_MS = 150;

// Audits --------------------------------------------------------------------------------------

const hashParameters = () => new URLSearchParams(location.hash.slice(1));

const start = async () => {
  const given = hashParameters().get("token");
  if (given) history.replaceState(null, "", location.pathname);
  try {
    await (given ? setToken(given) : renewSession());
    await openFirst();
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    if (error.status !== 401) return showMessage(error.message);
    await setToken(await askText("token")).catch(() => {}); // if it is wrong, start asks again
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
    const notes = found.map((audit) => audit.note ?? `${audit.id} has no flags yet.`);
    return showMessage(notes.join(" ") || "No audit is served.");
  }
  if (!state.reviewer) await askReviewer();
  $("reviewer").textContent = state.reviewer;
  const wanted = hashParameters().get("audit");
  await openAudit(ready.some((audit) => audit.id === wanted) ? wanted : ready[0].id);
};

const openAudit = async (id) => {
  const facts = await auditFacts(id);
  const api = auditApi(id, facts.revision);
  // Before the flags: a decision between the two requests then arrives twice instead of never.
  const progress = await api.progress();
  Object.assign(state, { api, facts, last: progress.last });
  Object.assign(state, { flag: null, video: null, videoFlags: [], boundary: null, undo: [] });
  $("audit").value = id;
  showClasses(facts.classes);
  showProgress(progress);
  const rank = Number(hashParameters().get("rank"));
  await queue.load();
  // In the unfiltered queue, the index is the rank minus 1.
  const hasRank = rank >= 1 && (await queue.at(rank - 1))?.rank === rank;
  await showErrors(() => queue.select(hasRank ? rank - 1 : 0));
};

const askReviewer = async () => {
  $("name").value = state.reviewer ?? "";
  let name = "";
  while (!name) name = await askText("name");
  Object.assign(state, { reviewer: name, undo: [] });
  localStorage.setItem("csl-reviewer", name);
  $("reviewer").textContent = name;
};

// Decisions of others ------------------------------------------------------------------------

const fetchNewDecisions = async () => {
  const { api, facts } = state;
  const { reviews, last } = await api.reviews(state.last);
  if (state.api !== api) return; // another audit was opened in the meantime
  state.last = last;
  const fresh = reviews.filter((review) => review.revision === facts.revision);
  if (!fresh.length) return;
  const isShown = showReviews(fresh);
  showProgress(await api.progress());
  const isOwn = fresh.every((review) => review.reviewer === state.reviewer);
  if (isShown && !isOwn && !state.boundary) await draw();
};

const poll = async () => {
  try {
    if (state.api && !document.hidden) await fetchNewDecisions();
  } catch (error) {
    if (!(error instanceof RequestError)) throw error; // a failed request is tried again the next time
  } finally {
    setTimeout(poll, POLL_MS);
  }
};

// Keys and the rest of the page ---------------------------------------------------------------

const digits = Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) => [digit, () => {
  const one = state.facts.classes[digit - 1];
  return one && chooseLabel(one.name);
}]));

/** An action that needs the facts of the video. */
const needsVideo = (action) => (event) => state.video && action(event);

listenToKeys({
  enqueue: enqueueOnSpan,
  isSpanShown,
  actions: {
    ...digits,
    a: () => hasOneLabel(state.flag) && decide({ decision: "wrong", label: state.flag.suggested }),
    c: () => decide({ decision: "correct" }),
    u: () => decide({ decision: "unsure" }),
    l: () => labelChooser.open(state.facts.classes, state.flag),
    b: needsVideo(() => (state.boundary ? changeBoundary(null) : startBoundary())),
    "[": needsVideo(() => moveBoundaryEdge("start")),
    "]": needsVideo(() => moveBoundaryEdge("stop")),
    z: undo,
    m: () => $("comment").focus(),
    j: () => queue.select(state.index + 1),
    k: () => queue.select(state.index - 1),
    ArrowDown: () => queue.select(state.index + 1),
    ArrowUp: () => queue.select(state.index - 1),
    ArrowLeft: needsVideo((event) => moveCursor(event, -1)),
    ArrowRight: needsVideo((event) => moveCursor(event, 1)),
    Enter: () => (state.boundary ? saveBoundary() : showNextUndecided()),
    Escape: () => state.boundary && changeBoundary(null),
    " ": needsVideo(() => player.toggle(state.flag)),
    v: needsVideo(toggleZoom),
  },
});

$("reviewer").addEventListener("click", () => showErrors(async () => {
  await askReviewer();
  if (state.flag) showPanel();
}));
$("audit").addEventListener("change", () => enqueue(() => openAudit($("audit").value)));
$("filters").addEventListener("submit", (event) => event.preventDefault());

/** Calls an action once, when no further event has arrived for a while. */
const debounced = (action, pause) => {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, pause);
  };
};
const redraw = debounced(() => isSpanShown() && showErrors(draw), RESIZING_MS);
$("filters").addEventListener("input", debounced(() => enqueue(applyFilters), TYPING_MS));
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

enqueue(start);
setTimeout(poll, POLL_MS);
