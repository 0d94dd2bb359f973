// Decisions of others, and whether the service and the audit are still those that the page shows.

import { RequestError } from "./api.js";
import { showReviews } from "./actions.js";
import { $ } from "./page.js";
import { showProgress } from "./panel.js";
import { draw } from "./span.js";
import { enqueue, state } from "./state.js";

const POLL_MS = 4000;

let isLost = false;

const showLost = (sentence) => {
  isLost = Boolean(sentence);
  $("lost").hidden = !sentence;
  $("lost").textContent = sentence ?? "";
};

/** Fetches new decisions; `reopen` loads all again when what the page shows is outdated. */
const fetchNewDecisions = async (reopen) => {
  const { api, facts } = state;
  const { reviews, last, newest } = await api.reviews(state.last);
  if (state.api !== api) return; // another audit was opened in the meantime
  if (isLost || newest !== facts.revision) {
    // A service that was away may have another database, other labels or another audit.
    const words = newest === facts.revision ? null : `Labels or flags have changed: this is audit ${newest} now.`;
    showLost(null);
    enqueue(() => reopen(words));
    return;
  }
  state.last = last;
  const fresh = reviews.filter((review) => review.revision === facts.revision);
  if (!fresh.length) return;
  const isShown = showReviews(fresh);
  await showProgress(await api.progress());
  const isOwn = fresh.every((review) => review.reviewer === state.reviewer);
  if (isShown && !isOwn && !state.draft) await draw();
};

export const startPolling = ({ reopen, askToken }) => {
  const poll = async () => {
    try {
      if (state.api && !document.hidden) await fetchNewDecisions(reopen);
    } catch (error) {
      if (!(error instanceof RequestError) && !(error instanceof SyntaxError)) throw error;
      // A failed request is tried again the next time.
      if (error.status === 401) await askToken();
      showLost("The service does not answer. What you decide now is not saved; the page goes on by itself when it is back.");
    } finally {
      setTimeout(poll, POLL_MS);
    }
  };
  setTimeout(poll, POLL_MS);
};
