// Dialogs that ask for something: a name, a token, a label.

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

/** Finds a class by typing, by arrows, or by its digit. */
export class LabelChooser {
  constructor(onPick) {
    this.onPick = onPick;
    $("label-text").addEventListener("input", () => this.fill());
    $("label-text").addEventListener("keydown", (event) => this.key(event));
  }

  open(classes, flag) {
    Object.assign(this, { classes, flag });
    $("label-text").value = "";
    this.fill();
    $("label-dialog").showModal();
  }

  fill() {
    const words = $("label-text").value.toLowerCase();
    this.fitting = this.classes.filter(({ name }) => name.toLowerCase().includes(words));
    this.at = 0;
    $("label-list").replaceChildren(...this.fitting.map((one) => this.item(one)));
    this.mark();
  }

  item({ name, colour }) {
    const { label, suggested } = this.flag;
    const note = { [suggested]: "suggested", [label]: "annotated" }[name] ?? "";
    const place = this.classes.findIndex((one) => one.name === name);
    const item = element("li", { role: "option" }, swatch(colour), name, element("span", { class: "soft" }, note),
      place < 9 ? element("kbd", {}, `${place + 1}`) : "");
    item.addEventListener("click", () => this.pick(name));
    return item;
  }

  mark() {
    [...$("label-list").children].forEach((item, i) => {
      item.setAttribute("aria-selected", i === this.at);
      if (i === this.at) item.scrollIntoView({ block: "nearest" });
    });
  }

  pick(name) {
    $("label-dialog").close();
    this.onPick(name);
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const digit = /^[1-9]$/.test(event.key) && !$("label-text").value && this.classes[event.key - 1];
    if (step && this.fitting.length) {
      this.at = (this.at + step + this.fitting.length) % this.fitting.length;
      this.mark();
    } else if (digit) this.pick(digit.name);
    else if (event.key === "Enter" && this.fitting.length) this.pick(this.fitting[this.at].name);
    else if (event.key !== "Enter") return;
    event.preventDefault();
  }
}
