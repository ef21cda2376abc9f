// One flame graph of a page: loads its tree, draws it, and answers to mouse, keys, search, filters and table.

import { along, pathTo, reversed } from "./callers.js";
import { draw, layout, palette, ROW, shade } from "./drawing.js";
import { table } from "./table.js";
import { Times } from "./times.js";
import { arranged, below, during, matching, ROOT, unpacked } from "./tree.js";

const MOST_HIGH = 0.72; // of the window
const numbers = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const percent = (ratio) => `${(100 * ratio).toFixed(ratio < 0.0995 ? 2 : 1)} %`;

export class Flame {
  constructor(element) {
    this.element = element;
    element.flame = this;
    const one = (name) => element.querySelector(`[data-flame-${name}]`);
    this.canvas = element.querySelector("canvas");
    [this.scroll, this.space, this.text, this.tip, this.search, this.thread, this.side] = [
      "scroll",
      "space",
      "text",
      "tip",
      "search",
      "thread",
      "side",
    ].map(one);
    [this.backwards, this.out, this.toggle, this.place, this.hits] = ["reverse", "out", "table", "rows", "hits"].map(
      one,
    );
    this.isReversed = false;
    this.selected = ROOT;
    this.zoomed = ROOT;
    this.listen();
    this.start();
  }

  async start() {
    try {
      const answer = await fetch(this.element.dataset.url, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      this.answer = await answer.arrayBuffer();
    } catch (error) {
      this.text.textContent = `The profile could not be loaded: ${error.message}.`;
      return;
    }
    const began = performance.now();
    const { json, tree, slices } = unpacked(this.answer);
    this.json = json;
    this.whole = tree;
    this.colours = palette();
    this.shades = this.json.names.map((name) => shade(name, this.colours.plain.length));
    this.arrange();
    this.element.dataset.drawnMs = (performance.now() - began).toFixed(1);
    this.offerThreads();
    this.offerTimes(slices);
    const asked = new URLSearchParams(location.search).get("frame");
    if (asked) this.show(asked);
  }

  // Another way to look at the same stacks: by callers, one thread, one side, a part of the time.
  arrange(path = []) {
    const thread = this.thread?.value ?? "";
    const { times, whole } = this;
    this.part = this.isPart ? during(whole, times.slices, times.from, times.to) : whole;
    const some = thread === "" ? this.part : below(this.part, (name) => name === Number(thread));
    const side = this.json.count < 2 ? 0 : this.side.value === "both" ? "both" : Number(this.side.value);
    this.callees = arranged(some, side);
    this.tree = this.isReversed ? reversed(some, side) : this.callees;
    this.zoomed = this.selected = along(this.tree, path);
    this.find();
    if (!this.place.hidden) this.fillTable();
  }

  find() {
    const asked = this.search.value.trim().toLowerCase();
    this.found = null;
    this.hits.textContent = "";
    if (asked) {
      const hit = matching(this.callees, (name) => name.toLowerCase().includes(asked));
      this.found = hit.names;
      this.hits.textContent = `${percent(hit.ratio)} in matching frames`;
    }
    this.draw();
  }

  draw() {
    this.across = this.scroll.clientWidth;
    const most = Math.max(160, Math.round(innerHeight * MOST_HIGH));
    const { frames, rows } = layout(this.tree, this.zoomed, this.across);
    this.frames = frames;
    this.high = Math.min(rows * ROW + 2, most);
    this.space.style.height = `${Math.max(0, rows * ROW + 2 - this.high)}px`;
    this.paint();
    this.out.hidden = this.zoomed === ROOT;
    this.describe();
  }

  paint() {
    draw(
      this.canvas,
      {
        ...this.seen(),
        labelOf: (at) => this.labelOf(at),
        goneOrNew: this.json.verdicts ? (at) => at !== ROOT && this.tree.total.some((side) => side[at] === 0) : null,
      },
      this.frames,
    );
  }

  seen() {
    const { tree, across, high, colours, found, selected, shades } = this;
    const top = this.scroll.scrollTop;
    return { tree, top, across, high, colours, found, selected, shades, verdicts: this.json.verdicts };
  }

  labelOf(at) {
    if (at === ROOT) return this.isReversed ? "all, by the function that ran" : "all";
    const name = this.tree.names[this.tree.name[at]];
    const sign = { more: "▲ ", less: "▼ " }[this.json.verdicts?.[this.tree.name[at]]] ?? "";
    return sign + name;
  }

  // What a frame costs, in words.
  words(at) {
    const { tree, json } = this;
    const name = this.labelOf(at);
    if (json.count > 1) {
      const [a, b] = [tree.total[0][at], tree.total[1][at]];
      const state = a === 0 ? ", new" : b === 0 ? ", gone" : "";
      const unit = json.unit === "us" ? " µs" : " %";
      const verdict = json.words?.[tree.name[at]];
      const said = [a, b].map((value, side) => `${numbers.format(value)}${unit} in ${json.sides[side]}`);
      return `${name}: ${said.join(", ")}${state}${verdict ? `; by itself ${verdict}` : ""}`;
    }
    const whole = this.part.total[0][ROOT] || 1;
    const ratio = tree.total[0][at] / whole;
    const cost = json.cost_us && !this.isPart ? `, ${numbers.format(ratio * json.cost_us)} µs per request` : "";
    if (this.isReversed) return `${name}: ${percent(ratio)}${cost}`; // in the function at the top, called on this path
    const own = tree.own[0][at] / whole;
    return `${name}: ${percent(ratio)}${cost}${own > 0 && at !== ROOT ? `; ${percent(own)} in itself` : ""}`;
  }

  describe() {
    this.text.textContent = this.words(this.selected === ROOT ? this.zoomed : this.selected);
  }

  zoom(at) {
    this.zoomed = at;
    this.selected = at;
    this.scroll.scrollTop = 0;
    this.draw();
  }

  select(at) {
    this.selected = at;
    const row = this.tree.depth[at];
    if (row * ROW < this.scroll.scrollTop) this.scroll.scrollTop = row * ROW;
    if ((row + 1) * ROW > this.scroll.scrollTop + this.high) this.scroll.scrollTop = (row + 1) * ROW - this.high;
    this.paint();
    this.describe();
  }

  // A function by its name, from a table or a link: searched for, and its widest frame in full width.
  show(name) {
    this.search.value = name;
    this.find();
    const at = this.tree.widest(name);
    if (at !== ROOT) this.zoom(at);
    this.element.scrollIntoView({ block: "nearest" });
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.scroll.scrollTop];
    return this.frames?.findLast((one) => x >= one.x && x < one.x + one.w && y >= one.y && y < one.y + ROW);
  }

  key(event) {
    const { tree, selected } = this;
    const beside = (step) => {
      if (selected === ROOT) return selected;
      const all = tree.childrenOf(tree.parent[selected]);
      return all[all.indexOf(selected) + step] ?? selected;
    };
    const wide = (at) => tree.width[at] > 0;
    const to = {
      ArrowDown: () => {
        const child = tree.childrenOf(selected)[0] ?? selected;
        return wide(child) ? child : selected;
      },
      ArrowUp: () => Math.max(ROOT, tree.parent[selected]),
      ArrowLeft: () => beside(-1),
      ArrowRight: () => (wide(beside(1)) ? beside(1) : selected),
      Home: () => ROOT,
    }[event.key];
    if (to) this.select(to());
    else if (event.key === "Enter" || event.key === " ") this.zoom(selected);
    else if (event.key === "Escape" && this.zoomed !== ROOT) this.zoom(ROOT);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  listen() {
    const ready = (act) => (event) => this.json && act(event);
    this.search.addEventListener(
      "input",
      ready(() => this.find()),
    );
    this.scroll.addEventListener(
      "scroll",
      ready(() => this.paint()),
    );
    this.scroll.addEventListener(
      "keydown",
      ready((event) => this.key(event)),
    );
    this.canvas.addEventListener(
      "click",
      ready((event) => {
        const hit = this.at(event);
        if (hit) this.zoom(hit.at);
      }),
    );
    this.canvas.addEventListener(
      "mousemove",
      ready((event) => this.hover(event)),
    );
    this.canvas.addEventListener("mouseleave", () => {
      this.tip.hidden = true;
    });
    this.out.addEventListener("click", () => this.zoom(ROOT));
    this.backwards.addEventListener(
      "click",
      ready(() => {
        this.isReversed = !this.isReversed;
        this.backwards.setAttribute("aria-pressed", this.isReversed);
        this.arrange();
      }),
    );
    for (const select of [this.thread, this.side])
      select?.addEventListener(
        "change",
        ready(() => this.arrange()),
      );
    this.toggle?.addEventListener(
      "click",
      ready(() => {
        this.place.hidden = !this.place.hidden;
        this.toggle.setAttribute("aria-pressed", !this.place.hidden);
        if (!this.place.hidden) this.fillTable();
      }),
    );
    document.addEventListener(
      "themechange",
      ready(() => {
        this.colours = palette();
        this.draw();
      }),
    );
    new ResizeObserver(ready(() => this.scroll.clientWidth !== this.across && this.draw())).observe(this.scroll);
  }

  hover(event) {
    const hit = this.at(event);
    this.tip.hidden = !hit;
    if (!hit) return;
    this.tip.textContent = hit.rest ? "Narrow frames: click to see them" : this.words(hit.at);
    const box = this.element.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 12, box.width - this.tip.offsetWidth - 4);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  offerThreads() {
    if (!this.thread || !this.json.threads?.length) return;
    for (const index of this.json.threads) {
      const option = document.createElement("option");
      option.value = index;
      option.textContent = this.json.names[index];
      this.thread.append(option);
    }
    this.thread.closest("[data-flame-threads]").hidden = false;
  }

  // A profile without times says so; functions side by side are of many profiles and have no strip.
  offerTimes(slices) {
    const [strip, without] = ["times", "timeless"].map((name) => this.element.querySelector(`[data-flame-${name}]`));
    if (slices && strip)
      this.times = new Times(strip, slices, this.json.on_load, () => this.arrange(pathTo(this.tree, this.zoomed)));
    else if (without) without.hidden = false;
  }

  // Of a part of the time nobody knows its requests, so it has shares and no costs per request.
  get isPart() {
    return this.times !== undefined && !this.times.isWhole;
  }

  fillTable() {
    const json = this.isPart ? { ...this.json, cost_us: null } : this.json;
    this.place.replaceChildren(table(this.callees, json, this.part.total[0][ROOT], (name) => this.show(name)));
  }
}

const flames = [...document.querySelectorAll("[data-flame]")].map((element) => new Flame(element));
for (const link of document.querySelectorAll("[data-frame]")) {
  link.addEventListener("click", () => flames[0]?.show(link.dataset.frame));
}
