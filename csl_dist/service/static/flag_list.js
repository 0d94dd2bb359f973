// A list of any number of flags, of which only the visible ones are fetched and drawn.

import { clock, element, kindWords, likely, score, swatch } from "./text.js";

const ROW_HEIGHT = 74;
const PAGE_SIZE = 100;
const EXTRA_ROWS = 6;

export class FlagList {
  constructor(list, spacer, { fetchPage, classColour, onTotal, onSelect, onClick }) {
    Object.assign(this, { list, spacer, fetchPage, classColour, onTotal, onSelect, onClick });
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

  /** Starts again with other filters; resolves when the first page has arrived. */
  async load() {
    this.reset();
    this.list.scrollTop = 0;
    await this.fetch(0);
    this.draw();
  }

  async fetch(number) {
    const { pages } = this;
    if (!pages.has(number)) {
      const request = this.fetchPage(number * PAGE_SIZE, PAGE_SIZE).then((page) => {
        if (pages !== this.pages) return; // the list has started again
        this.total = page.total;
        this.onTotal(page.total);
        page.flags.forEach((flag, i) => this.flags.set(number * PAGE_SIZE + i, flag));
        this.draw();
      });
      request.catch(() => pages.delete(number));
      pages.set(number, request);
    }
    return pages.get(number);
  }

  /** The flag at an index, fetched if needed. */
  async at(index) {
    if (index < 0) return null;
    await this.fetch(Math.floor(index / PAGE_SIZE));
    return this.flags.get(index) ?? null;
  }

  /** The index of a flag among those fetched so far; -1 if it is not among them. */
  indexOf(flag) {
    for (const [index, one] of this.flags) if (one === flag || isSame(one, flag)) return index;
    return -1;
  }

  async select(index) {
    const flag = await this.at(index);
    if (!flag) return false;
    this.selected = index;
    const top = index * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.list;
    if (top < scrollTop || top + ROW_HEIGHT > scrollTop + clientHeight) {
      this.list.scrollTop = Math.max(0, top - clientHeight / 3);
    }
    this.draw();
    this.onSelect(flag, index);
    return true;
  }

  /** The next index after a given one whose flag is undecided; after the end it starts at the top. */
  async nextUndecided(after) {
    for (let step = 1; step <= this.total; step++) {
      const index = (after + step) % this.total;
      const flag = await this.at(index);
      if (flag?.state === "undecided") return index;
    }
    return -1;
  }

  /** Changes flags, for example because of a new decision. */
  update(isAffected, change) {
    for (const flag of this.flags.values()) if (isAffected(flag)) change(flag);
    this.redraw();
  }

  /** Draws all rows again. */
  redraw() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
  }

  draw() {
    this.spacer.style.height = `${this.total * ROW_HEIGHT}px`;
    const first = Math.max(0, Math.floor(this.list.scrollTop / ROW_HEIGHT) - EXTRA_ROWS);
    const last = Math.min(this.total, Math.ceil((this.list.scrollTop + this.list.clientHeight) / ROW_HEIGHT) + EXTRA_ROWS);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      const flag = this.flags.get(index);
      if (!flag) {
        this.fetch(Math.floor(index / PAGE_SIZE)).catch(() => {});
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
      element("div", { class: "name", title: flag.video }, flag.video),
      element("div", { class: "score", title: flag.expected == null ? "score" : "how likely it is an error, by the decisions so far" },
        likely(flag) ?? score(flag.score)),
      element("div", { class: "time" }, seconds),
      mark(flag),
      element("div", { class: "names" }, element("span", { class: `dot ${flag.kind}`, title: kindWords(flag.kind) }),
        swatch(this.classColour(flag.label)), flag.label || "unlabelled",
        ...(flag.suggested === flag.label ? [] : [arrow(flag), swatch(this.classColour(flag.suggested)), flag.suggested])));
    row.style.top = `${index * ROW_HEIGHT}px`;
    row.addEventListener("click", () => this.onClick(index));
    return row;
  }
}

const isSame = (one, other) =>
  one.video === other.video && one.start === other.start && one.stop === other.stop && one.kind === other.kind;

const arrow = (flag) => (flag.fix?.startsWith("swap") ? " ⇄ " : flag.kind === "missing" ? " + " : " → ");

const MARKS = { wrong: "✗ wrong", boundary: "⇔ moved", edited: "✎ changed", order: "⇄ order", correct: "✓ right", unsure: "? unsure" };

const mark = (flag) => {
  if (flag.state === "disputed") return element("div", { class: "mark disputed" }, "≠ disputed");
  const last = flag.reviews.at(-1);
  return element("div", { class: `mark ${last?.decision ?? ""}` }, last ? MARKS[last.decision] : "");
};
