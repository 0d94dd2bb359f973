// The review page: opens audits, listens to keys, and fetches the decisions of others.

import { RequestError, auditApi, auditFacts, audits, me, renewSession, setToken } from "./api.js";
import {
  accept, changeDraft, chooseLabel, decide, markHere, mergeHere, nudge, openChooser, saveDraft, setSpanEnd, snap,
  splitHere, startSpan, swapHere, takeEdge, undo,
} from "./actions.js";
import { chooseAnnotator, listenToAnnotators, showAnnotators } from "./annotators.js";
import { startPolling } from "./connection.js";
import { askText } from "./dialogs.js";
import { listenToEffort, showEffort } from "./effort.js";
import { decideTogether, showGroups, showSimilar } from "./groups.js";
import { listenToKeys } from "./keys.js";
import { showDownloads } from "./next.js";
import { listenToOverview } from "./overview.js";
import { $, showErrors, showMessage, toast } from "./page.js";
import { showFacts, showProgress } from "./panel.js";
import { draw, goToBoundary, goToDisagreement, player, showFlag, showPanel, toggleZoom } from "./span.js";
import { enqueue, isSpanShown, orderedClasses, state } from "./state.js";
import { assign, showTeam } from "./team.js";
import { element } from "./text.js";
import { applyFilters, queue, showNextUndecided } from "./queue.js";

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
    await askToken();
    await start();
  }
};

const askToken = async () => setToken(await askText("token")).catch(() => {}); // if it is wrong, it is asked again

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
  await findOutWho();
  const wanted = hashParameters().get("audit");
  if (wanted && !ready.some((audit) => audit.id === wanted)) return showUnknown(wanted, ready);
  await openAudit(wanted ?? ready[0].id);
};

/** The name that the service knows counts; without one, reviewers name themselves. */
const findOutWho = async () => {
  state.me = await me();
  if (state.me.name) state.reviewer = state.me.name;
  else if (!state.reviewer) await askReviewer();
  $("reviewer").textContent = state.reviewer;
  $("reviewer").disabled = Boolean(state.me.name);
  $("reviewer").title = state.me.name ? "The service knows you by this name" : "Change who reviews";
};

/** A link to an audit that is not here opens no other one in its place. */
const showUnknown = (wanted, ready) => {
  const known = ready.map((audit) => audit.id).join(", ");
  showMessage(`The link is to the audit “${wanted}”, which this service does not have. Choose one above: ${known}.`);
  $("audit").value = "";
};

const openAudit = async (id) => {
  const facts = await auditFacts(id);
  const api = auditApi(id, facts.revision);
  // Before the flags: a decision between the two requests then arrives twice instead of never.
  const progress = await api.progress();
  Object.assign(state, { api, facts, last: progress.last });
  Object.assign(state, { flag: null, video: null, videoFlags: [], missed: [], draft: null, undo: [] });
  $("audit").value = id;
  showFacts(facts);
  $("annotators").hidden = !(state.me.may_see_annotators && facts.annotators.length);
  showProgress(progress);
  showErrors(showEffort);
  await showPlace();
};

/** Shows the span that the address names, or the first of the queue. */
const showPlace = async () => {
  const given = hashParameters();
  const rank = Number(given.get("rank"));
  await queue.load();
  if (given.get("video")) {
    const { flags } = await state.api.flags({ source: "segments", video: given.get("video"), limit: 1000 });
    const wanted = flags.find((one) => one.start <= Number(given.get("start")) && one.stop > Number(given.get("start")));
    if (wanted) return showErrors(() => showFlag(wanted, -1));
  }
  // In the unfiltered queue, the index is the rank minus 1.
  const hasRank = rank >= 1 && (await queue.at(rank - 1))?.rank === rank;
  if (rank > (state.facts.num_flags ?? 0)) {
    const { flags: [below] } = await state.api.flags({ source: "findings", offset: rank - 1, limit: 1 });
    if (below) return showErrors(() => showFlag(below, -1));
  }
  if (rank && !hasRank) toast(`There is no flag of rank ${rank} in this list; the first one is shown.`, true);
  const isShown = await queue.select(hasRank ? rank - 1 : 0);
  if (!isShown) showMessage("Nothing is flagged. Choose “all segments” to look at any video.");
  return isShown;
};

/** Loads everything again, at the span that is shown; drafts and undo of before no longer fit. */
const reopen = async (words) => {
  await openFirst();
  if (words) toast(words);
};

const askReviewer = async () => {
  $("name").value = state.reviewer ?? "";
  let name = "";
  while (!name) name = await askText("name");
  Object.assign(state, { reviewer: name, undo: [] });
  localStorage.setItem("csl-reviewer", name);
  $("reviewer").textContent = name;
};

// Keys and the rest of the page ---------------------------------------------------------------

const digits = Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) => [digit, () => {
  const one = orderedClasses()[digit - 1];
  return one && chooseLabel(one.name);
}]));

/** An action that needs the facts of the video. */
const needsVideo = (action) => (event) => state.video && action(event);

listenToKeys({
  isSpanShown,
  actions: {
    ...digits,
    a: accept,
    c: (event) => decide({ decision: "correct" }, event),
    u: (event) => decide({ decision: "unsure" }, event),
    l: openChooser,
    b: needsVideo(() => (state.draft ? changeDraft(null) : startSpan())),
    "[": needsVideo(() => setSpanEnd("start")),
    "]": needsVideo(() => setSpanEnd("stop")),
    e: needsVideo(takeEdge),
    ",": needsVideo(() => nudge(-1, false)),
    ".": needsVideo(() => nudge(1, false)),
    "<": needsVideo(() => nudge(-1, true)),
    ">": needsVideo(() => nudge(1, true)),
    p: needsVideo(snap),
    x: needsVideo(splitHere),
    d: needsVideo((event) => mergeHere(event.shiftKey)),
    w: needsVideo(swapHere),
    i: needsVideo(markHere),
    g: showSimilar,
    z: undo,
    m: () => $("comment").focus(),
    j: () => queue.select(state.index + 1),
    k: () => queue.select(state.index - 1),
    ArrowDown: () => queue.select(state.index + 1),
    ArrowUp: () => queue.select(state.index - 1),
    ArrowLeft: needsVideo((event) => (event.shiftKey ? player.stepSeconds(-1) : player.step(-1))),
    ArrowRight: needsVideo((event) => (event.shiftKey ? player.stepSeconds(1) : player.step(1))),
    PageUp: needsVideo(() => goToBoundary(-1)),
    PageDown: needsVideo(() => goToBoundary(1)),
    n: needsVideo((event) => goToDisagreement(event.shiftKey ? -1 : 1) || toast("Models agree with the labels from here on.")),
    Enter: (event) => (state.draft ? saveDraft(event) : showNextUndecided()),
    Escape: () => state.draft && changeDraft(null),
    " ": needsVideo(() => player.toggle(state.flag)),
    o: () => player.toggleLoop(),
    s: () => player.toggleSound(),
    r: needsVideo(() => player.changeCamera()),
    "-": () => player.changeSpeed(-1),
    "=": () => player.changeSpeed(1),
    "+": () => player.changeSpeed(1),
    v: needsVideo(toggleZoom),
  },
});

$("speed").addEventListener("click", () => player.changeSpeed(1));
$("reviewer").addEventListener("click", () => showErrors(async () => {
  await askReviewer();
  if (state.flag) showPanel();
}));
$("audit").addEventListener("change", () => enqueue(() => openAudit($("audit").value)));
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("groups").addEventListener("click", () => enqueue(showGroups));
$("sheet-accept").addEventListener("click", () => enqueue(() => decideTogether(true)));
$("sheet-correct").addEventListener("click", () => enqueue(() => decideTogether(false)));
$("groups-dialog").addEventListener("close", () => isSpanShown() && enqueue(() => showErrors(draw)));
$("annotators").addEventListener("click", () => enqueue(showAnnotators));
listenToAnnotators((name) => enqueue(async () => {
  chooseAnnotator(name);
  await applyFilters();
}));
$("team").addEventListener("click", () => enqueue(showTeam));
$("team-assign").addEventListener("click", () => enqueue(assign));
$("download").addEventListener("click", () => enqueue(() => showDownloads()));
for (const button of document.querySelectorAll("dialog .close")) button.addEventListener("click", () => button.closest("dialog").close());

/** A link that is pasted into the open page shows what it names; the page's own changes do not come here. */
addEventListener("hashchange", () => enqueue(start));

/** Calls an action once, when no further event has arrived for a while. */
const debounced = (action, pause) => {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, pause);
  };
};
const redraw = debounced(() => isSpanShown() && showErrors(draw), RESIZING_MS);
const filter = debounced(() => enqueue(applyFilters), TYPING_MS);
$("filters").addEventListener("input", filter);
listenToEffort(filter);
listenToOverview();
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

enqueue(start);
startPolling({ reopen, askToken });
