// The queue: any number of spans, of which only those in sight are fetched and drawn.

import { clock, element, score, swatch } from "./text.js";

const ROW = 58;
const PAGE = 100;
const SPARE = 6;

export class Queue {
  constructor(list, spacer, { fetchPage, colourOf, onTotal, onSelect, onClick }) {
    Object.assign(this, { list, spacer, fetchPage, colourOf, onTotal, onSelect, onClick });
    this.reset();
    list.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(list);
  }

  reset() {
    this.total = 0;
    this.flags = new Map();
    this.pages = new Map();
    this.selected = -1;
    this.rows = new Map();
    this.spacer.replaceChildren();
  }

  /** Starts over with other filters; resolves when the first page is there. */
  async load() {
    this.reset();
    this.list.scrollTop = 0;
    await this.page(0);
    this.draw();
  }

  async page(number) {
    const { pages } = this;
    if (!pages.has(number)) {
      const asked = this.fetchPage(number * PAGE, PAGE).then((answer) => {
        if (pages !== this.pages) return; // the list has started over
        this.total = answer.total;
        this.onTotal(answer.total);
        answer.flags.forEach((flag, i) => this.flags.set(number * PAGE + i, flag));
        this.draw();
      });
      asked.catch(() => pages.delete(number));
      pages.set(number, asked);
    }
    return pages.get(number);
  }

  /** The flag at a place, fetched if need be. */
  async at(index) {
    if (index < 0) return null;
    await this.page(Math.floor(index / PAGE));
    return this.flags.get(index) ?? null;
  }

  /** Where a flag is in the list, as far as that is fetched; -1 where it is not. */
  placeOf(flag) {
    for (const [index, one] of this.flags) if (one.rank === flag.rank) return index;
    return -1;
  }

  async select(index) {
    const flag = await this.at(index);
    if (!flag) return false;
    this.selected = index;
    const top = index * ROW;
    const { scrollTop, clientHeight } = this.list;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) {
      this.list.scrollTop = Math.max(0, top - clientHeight / 3);
    }
    this.draw();
    await this.onSelect(flag, index);
    this.redraw(); // others may have decided since the page was fetched
    return true;
  }

  /** The next place after one whose span nobody has decided; from the start again at the end. */
  async nextUndecided(after) {
    for (let step = 1; step <= this.total; step++) {
      const index = (after + step) % this.total;
      const flag = await this.at(index);
      if (flag?.state === "undecided") return index;
    }
    return -1;
  }

  /** Takes over what others, or this reviewer, decided meanwhile. */
  update(fits, change) {
    for (const flag of this.flags.values()) if (fits(flag)) change(flag);
    this.redraw();
  }

  /** Draws all rows anew. */
  redraw() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
  }

  draw() {
    this.spacer.style.height = `${this.total * ROW}px`;
    const first = Math.max(0, Math.floor(this.list.scrollTop / ROW) - SPARE);
    const last = Math.min(this.total, Math.ceil((this.list.scrollTop + this.list.clientHeight) / ROW) + SPARE);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      const flag = this.flags.get(index);
      if (!flag) {
        this.page(Math.floor(index / PAGE)).catch(() => {});
        continue;
      }
      if (!this.rows.has(index)) {
        const row = this.row(flag, index);
        this.rows.set(index, row);
        this.spacer.append(row);
      }
      this.rows.get(index).setAttribute("aria-selected", index === this.selected);
    }
    this.list.setAttribute("aria-activedescendant", `flag-${this.selected}`);
  }

  row(flag, index) {
    const seconds = `${clock(flag.start_seconds)}–${clock(flag.stop_seconds)}`;
    const row = element("div", { class: "item", role: "option", id: `flag-${index}`, "data-rank": flag.rank },
      element("div", { class: "name" }, flag.video, " ", element("small", {}, seconds)),
      element("div", { class: "score", title: "score" }, score(flag.score)),
      element("div", { class: "names" }, swatch(this.colourOf(flag.label)), flag.label, " → ",
        swatch(this.colourOf(flag.suggested)), flag.suggested),
      mark(flag));
    row.style.top = `${index * ROW}px`;
    row.addEventListener("click", () => this.onClick(index));
    return row;
  }
}

const MARKS = { wrong: "✗ wrong", boundary: "⇔ moved", correct: "✓ right", unsure: "? unsure" };

const mark = (flag) => {
  if (flag.state === "disputed") return element("div", { class: "mark disputed" }, "≠ disputed");
  const last = flag.reviews.at(-1);
  return element("div", { class: `mark ${last?.decision ?? ""}` }, last ? MARKS[last.decision] : "");
};
