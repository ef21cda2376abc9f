// The samples of a profile over time, and the part of it that one brushes.

import { Brush } from "../brush.js";

const SVG = "http://www.w3.org/2000/svg";
const seconds = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
const percent = (ratio) => `${(100 * ratio).toFixed(ratio < 0.0995 ? 2 : 1)} %`;

export class Times extends Brush {
  // `slices` of the answer; `changed` is called when the part is another one.
  constructor(element, slices, onLoad, changed) {
    const one = (name) => element.querySelector(`[data-flame-${name}]`);
    const places = Array.from(slices.edges, (_, at) => at);
    super({ strip: one("strip"), edges: { from: one("from"), to: one("to") }, places, changed });
    this.slices = slices;
    this.onLoad = onLoad;
    [this.part, this.always, this.first, this.last] = ["part", "always", "first", "last"].map(one);
    this.weights = Array.from({ length: this.count }, (_, at) => {
      let sum = 0;
      for (let entry = slices.edges[at]; entry < slices.edges[at + 1]; entry += 1) sum += slices.weights[entry];
      return sum;
    });
    this.sum = this.weights.reduce((a, b) => a + b, 0);
    this.bars();
    this.always.addEventListener("click", () => {
      this.clear();
      this.edges.from.focus();
    });
    this.first.textContent = this.told(0);
    this.last.textContent = this.told(this.count);
    element.hidden = false;
    this.say();
  }

  told(at) {
    return `${seconds.format(this.slices.start_s + at * this.slices.step_s)} s`;
  }

  bars() {
    const most = Math.max(...this.weights);
    const picture = this.strip.querySelector("svg");
    picture.setAttribute("viewBox", `0 0 ${this.count} 100`);
    this.rects = this.weights.map((weight, at) => {
      const high = weight > 0 ? Math.max(2, (96 * weight) / most) : 0;
      const rect = document.createElementNS(SVG, "rect");
      const box = { x: at + 0.08, y: 100 - high, width: 0.84, height: high };
      for (const [name, value] of Object.entries(box)) rect.setAttribute(name, value);
      return rect;
    });
    picture.replaceChildren(...this.rects);
  }

  say() {
    const { from, to } = this;
    const inside = this.weights.slice(from, to).reduce((a, b) => a + b, 0);
    const where = this.onLoad ? "of the load" : "from its first sample";
    const ratio = this.isWhole ? "" : `, ${percent(inside / this.sum)} of the profile`;
    this.part.textContent = `${this.told(from)} to ${this.told(to)} ${where}${ratio}`;
    this.always.hidden = this.isWhole;
    this.rects.forEach((rect, at) => {
      rect.classList.toggle("flame-out", at < from || at >= to);
    });
    super.say();
  }
}
