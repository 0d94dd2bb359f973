// Dialogs that ask for a name, a token or a label.

import { $ } from "./page.js";
import { element, swatch } from "./text.js";

/** The text that was typed into a dialog; it may be empty. */
export const askText = (name) => new Promise((resolve) => {
  const dialog = $(`${name}-dialog`);
  dialog.oncancel = (event) => event.preventDefault();
  dialog.onclose = () => resolve($(name).value.trim());
  dialog.showModal();
  $(name).focus();
});

/** Chooses a class by typing, with the arrow keys, or by its digit. */
export class LabelChooser {
  constructor(onPick) {
    this.onPick = onPick;
    $("label-text").addEventListener("input", () => this.showMatches());
    $("label-text").addEventListener("keydown", (event) => this.onKey(event));
  }

  /** `classes` in the order in which digits name them. */
  open(classes, flag) {
    Object.assign(this, { classes, flag });
    $("label-text").value = "";
    this.showMatches();
    $("label-dialog").showModal();
  }

  showMatches() {
    const text = $("label-text").value.toLowerCase();
    this.matches = this.classes.filter(({ name }) => name.toLowerCase().includes(text));
    this.highlighted = 0;
    $("label-list").replaceChildren(...this.matches.map((one) => this.item(one)));
    this.highlight();
  }

  item({ name, colour }) {
    const { label, suggested } = this.flag;
    const note = { [suggested]: "suggested", [label]: "annotated" }[name] ?? "";
    const index = this.classes.findIndex((one) => one.name === name);
    const item = element("li", { role: "option" }, swatch(colour), name, element("span", { class: "soft" }, note),
      index < 9 ? element("kbd", {}, `${index + 1}`) : "");
    item.addEventListener("click", () => this.pick(name));
    return item;
  }

  highlight() {
    [...$("label-list").children].forEach((item, i) => {
      item.setAttribute("aria-selected", i === this.highlighted);
      if (i === this.highlighted) item.scrollIntoView({ block: "nearest" });
    });
  }

  pick(name) {
    $("label-dialog").close();
    this.onPick(name);
  }

  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const digit = /^[1-9]$/.test(event.key) && !$("label-text").value && this.classes[event.key - 1];
    if (step && this.matches.length) {
      this.highlighted = (this.highlighted + step + this.matches.length) % this.matches.length;
      this.highlight();
    } else if (digit) this.pick(digit.name);
    else if (event.key === "Enter" && this.matches.length) this.pick(this.matches[this.highlighted].name);
    else if (event.key !== "Enter") return;
    event.preventDefault();
  }
}
