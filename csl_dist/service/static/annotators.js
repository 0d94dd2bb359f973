// How often decisions went against each annotator's labels, for those who may see it.

import { $ } from "./page.js";
import { state } from "./state.js";
import { element, percent } from "./text.js";

let rows = [];

const share = ({ against, decided }) => (decided ? percent(against / decided) : "–");

const table = (title, parts) => element("section", {}, element("h3", {}, title),
  parts.length ? element("table", {},
    element("thead", {}, element("tr", {}, ...["", "decided", "against", "share"].map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...parts.map((part) => element("tr", {}, element("th", { scope: "row" }, part.name),
      element("td", {}, part.decided), element("td", {}, part.against), element("td", {}, share(part))))))
    : element("p", { class: "soft" }, "No decision yet."));

const showOne = () => {
  const one = rows.find(({ annotator }) => annotator === $("annotator-name").value);
  $("annotator-facts").textContent = `${one.videos} videos. Reviewers were sure of ${one.decided} places in them and went against the label in ${one.against} (${share(one)})${one.disputed ? `; ${one.disputed} are disputed` : ""}.`;
  $("annotator-tables").replaceChildren(table("By class", one.classes), table("By boundary", one.boundaries));
};

export const showAnnotators = async () => {
  rows = await state.api.annotators();
  const before = $("annotator-name").value;
  $("annotator-name").replaceChildren(...rows.map((row) =>
    element("option", { value: row.annotator }, `${row.annotator}: ${row.against} of ${row.decided}`)));
  if (rows.some(({ annotator }) => annotator === before)) $("annotator-name").value = before;
  showOne();
  if (!$("annotators-dialog").open) $("annotators-dialog").showModal();
};

/** Lets the queue show the spans of one annotator only. */
export const chooseAnnotator = (name) => {
  $("annotators-dialog").close();
  $("filter-annotator").value = name;
  $("filter-annotator").closest("details").open = true;
};

export const listenToAnnotators = (choose) => {
  $("annotator-name").addEventListener("change", showOne);
  $("annotator-spans").addEventListener("click", () => choose($("annotator-name").value));
};
