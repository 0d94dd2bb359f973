// The review page: opens audits, listens to keys, and asks what others decide.

import { Refused, auditApi, auditFacts, audits, renewSession, setToken } from "./api.js";
import {
  apply, chooseLabel, chooser, decide, keepBoundary, move, moveEdge, startMoving, undo,
} from "./deciding.js";
import { askText } from "./dialogs.js";
import { listen } from "./keys.js";
import { $, guarded, showEmpty } from "./page.js";
import { showClasses, showProgress } from "./panel.js";
import { draw, player, showPanel, step, zoom } from "./span.js";
import { act, inTurn, isReady, state } from "./state.js";
import { element } from "./text.js";
import { applyFilters, goOn, queue } from "./worklist.js";

const POLL_MS = 4000;
const TYPING_MS = 200;
const RESIZING_MS = 150;

// Audits --------------------------------------------------------------------------------------

const place = () => new URLSearchParams(location.hash.slice(1));

const start = async () => {
  const given = place().get("token");
  if (given) history.replaceState(null, "", location.pathname);
  try {
    await (given ? setToken(given) : renewSession());
    await openFirst();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status !== 401) return showEmpty(error.message);
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
    return showEmpty(notes.join(" ") || "No audit is served.");
  }
  if (!state.reviewer) await askReviewer();
  $("reviewer").textContent = state.reviewer;
  const wanted = place().get("audit");
  await openAudit(ready.some((audit) => audit.id === wanted) ? wanted : ready[0].id);
};

const openAudit = async (id) => {
  const facts = await auditFacts(id);
  const api = auditApi(id, facts.revision);
  // Before the flags: what is decided between the two is then seen twice rather than never.
  const progress = await api.progress();
  Object.assign(state, { api, facts, last: progress.last });
  Object.assign(state, { flag: null, video: null, videoFlags: [], moved: null, undo: [] });
  $("audit").value = id;
  showClasses(facts.classes);
  showProgress(progress);
  const rank = Number(place().get("rank"));
  await queue.load();
  // Ranks count up in the unfiltered queue.
  const isThere = rank >= 1 && (await queue.at(rank - 1))?.rank === rank;
  await guarded(() => queue.select(isThere ? rank - 1 : 0));
};

const askReviewer = async () => {
  $("name").value = state.reviewer ?? "";
  let name = "";
  while (!name) name = await askText("name");
  Object.assign(state, { reviewer: name, undo: [] });
  localStorage.setItem("csl-reviewer", name);
  $("reviewer").textContent = name;
};

// What others do ------------------------------------------------------------------------------

const takeNews = async () => {
  const { api, facts } = state;
  const { reviews, last } = await api.reviews(state.last);
  if (state.api !== api) return; // another audit was opened meanwhile
  state.last = last;
  const fresh = reviews.filter((review) => review.revision === facts.revision);
  if (!fresh.length) return;
  const isShown = apply(fresh);
  showProgress(await api.progress());
  const isOwn = fresh.every((review) => review.reviewer === state.reviewer);
  if (isShown && !isOwn && !state.moved) await draw();
};

const poll = async () => {
  try {
    if (state.api && !document.hidden) await takeNews();
  } catch (error) {
    if (!(error instanceof Refused)) throw error; // else the next time may do better
  } finally {
    setTimeout(poll, POLL_MS);
  }
};

// Keys and the rest of the page ---------------------------------------------------------------

const digits = Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) => [digit, () => {
  const one = state.facts.classes[digit - 1];
  return one && chooseLabel(one.name);
}]));

/** What can't be done to a span whose video can't be read. */
const seen = (action) => (event) => state.video && action(event);

listen({
  act,
  isReady,
  actions: {
    ...digits,
    a: () => decide({ decision: "wrong", label: state.flag.suggested }),
    c: () => decide({ decision: "correct" }),
    u: () => decide({ decision: "unsure" }),
    l: () => chooser.open(state.facts.classes, state.flag),
    b: seen(() => (state.moved ? move(null) : startMoving())),
    "[": seen(() => moveEdge("start")),
    "]": seen(() => moveEdge("stop")),
    z: undo,
    m: () => $("comment").focus(),
    j: () => queue.select(state.index + 1),
    k: () => queue.select(state.index - 1),
    ArrowDown: () => queue.select(state.index + 1),
    ArrowUp: () => queue.select(state.index - 1),
    ArrowLeft: seen((event) => step(event, -1)),
    ArrowRight: seen((event) => step(event, 1)),
    Enter: () => (state.moved ? keepBoundary() : goOn()),
    Escape: () => state.moved && move(null),
    " ": seen(() => player.toggle(state.flag)),
    v: seen(zoom),
  },
});

$("reviewer").addEventListener("click", () => guarded(async () => {
  await askReviewer();
  if (state.flag) showPanel();
}));
$("audit").addEventListener("change", () => inTurn(() => openAudit($("audit").value)));
$("filters").addEventListener("submit", (event) => event.preventDefault());

/** Calls once, when no further event has come for a while. */
const settled = (action, pause) => {
  let waiting = null;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(action, pause);
  };
};
const redraw = settled(() => isReady() && guarded(draw), RESIZING_MS);
$("filters").addEventListener("input", settled(() => inTurn(applyFilters), TYPING_MS));
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

inTurn(start);
setTimeout(poll, POLL_MS);
