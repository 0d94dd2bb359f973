// Similar flags, decided together with one look at a contact sheet.

import { addDecision } from "./decisions.js";
import { save } from "./actions.js";
import { $, toast } from "./page.js";
import { player } from "./span.js";
import { classColour, enqueue, state } from "./state.js";
import { clock, element, kindWords, percent, swatch } from "./text.js";

const PER_SHEET = 60;
const PER_FLAG = 3;
const WIDTH = 128;
const SAVED_AT_ONCE = 6;

let shown = []; // flags of the sheet, each with its box

/** The list of groups, from which a sheet is opened. */
export const showGroups = async () => {
  const groups = await state.api.groups();
  $("group-list").replaceChildren(...groups.map((group) => {
    const button = element("button", { type: "button" }, element("b", {}, `${group.flags}×`), ` ${kindWords(group.kind)}: `,
      swatch(classColour(group.label)), group.label, " → ", swatch(classColour(group.suggested)), group.suggested,
      element("span", { class: "soft" }, ` ${percent(group.expected)} likely`));
    button.addEventListener("click", () => enqueue(() => showSheet(group)));
    return element("li", {}, button);
  }));
  if (!groups.length) $("group-list").replaceChildren(element("li", {}, "No two open flags say the same."));
  $("sheet").replaceChildren();
  $("sheet-actions").hidden = true;
  if (!$("groups-dialog").open) $("groups-dialog").showModal();
};

export const showSimilar = async () => {
  player.stop();
  await showGroups();
  const { kind, label, suggested } = state.flag;
  await showSheet({ kind, label, suggested });
};

const showSheet = async ({ kind, label, suggested }) => {
  const page = await state.api.flags({ kind, annotated: label, suggested, state: "undecided", limit: PER_SHEET });
  shown = page.flags.map((flag) => ({ flag, box: element("input", { type: "checkbox" }) }));
  $("sheet").replaceChildren(...shown.map(({ flag, box }) => {
    box.checked = true;
    const { video, start, stop } = flag;
    const frames = Array.from({ length: PER_FLAG }, (_, i) => Math.round(start + ((stop - 1 - start) * i) / (PER_FLAG - 1)));
    return element("label", { class: "card" }, element("span", { class: "card-name" }, box, ` ${video} ${clock(flag.start_seconds)}`),
      element("span", { class: "strip" }, ...frames.map((frame) =>
        element("img", { src: state.api.pictureUrl(video, frame, WIDTH), alt: `frame ${frame}`, loading: "lazy" }))));
  }));
  $("sheet-title").textContent = `${kindWords(kind)}: ${label} → ${suggested}`;
  $("sheet-actions").hidden = !shown.length;
};

/** Decides on all flags whose box is checked: their own proposals, or that labels are right. */
export const decideTogether = async (isAccepted) => {
  const chosen = shown.filter(({ box }) => box.checked).map(({ flag }) => flag);
  const decision = isAccepted ? { accept: true } : { decision: "correct" };
  const comment = `with ${chosen.length} similar ones`;
  const one = async (flag) => addDecision(flag, await save(flag, { ...decision, comment }));
  for (let i = 0; i < chosen.length; i += SAVED_AT_ONCE) await Promise.all(chosen.slice(i, i + SAVED_AT_ONCE).map(one));
  toast(`${chosen.length} flags decided together`);
  await showGroups();
};
