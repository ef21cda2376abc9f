// The samples of a profile over time, and the part of it that one brushes: by mouse, by touch, by the keys of its edges.

const SVG = "http://www.w3.org/2000/svg";
const FAR = 5; // slices that a page key moves an edge by
const seconds = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
const percent = (ratio) => `${(100 * ratio).toFixed(ratio < 0.0995 ? 2 : 1)} %`;

export class Times {
  // `slices` of the answer; `changed` is called when the part is another one, once for each picture of the screen.
  constructor(element, slices, onLoad, changed) {
    const one = (name) => element.querySelector(`[data-flame-${name}]`);
    this.slices = slices;
    this.onLoad = onLoad;
    this.count = slices.edges.length - 1;
    this.changed = changed;
    [this.strip, this.part, this.always, this.first, this.last] = ["strip", "part", "always", "first", "last"].map(one);
    this.edges = { from: one("from"), to: one("to") };
    this.weights = Array.from({ length: this.count }, (_, at) => {
      let sum = 0;
      for (let entry = slices.edges[at]; entry < slices.edges[at + 1]; entry += 1) sum += slices.weights[entry];
      return sum;
    });
    this.sum = this.weights.reduce((a, b) => a + b, 0);
    [this.from, this.to] = [0, this.count];
    this.bars();
    this.listen();
    this.first.textContent = this.clock(0);
    this.last.textContent = this.clock(this.count);
    element.hidden = false;
    this.say();
  }

  get isWhole() {
    return this.from === 0 && this.to === this.count;
  }

  clock(at) {
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

  set(from, to) {
    if (from === this.from && to === this.to) return;
    [this.from, this.to] = [from, to];
    this.say();
    this.pending ??= requestAnimationFrame(() => {
      this.pending = undefined;
      this.changed();
    });
  }

  move(edge, to) {
    if (edge === "from") this.set(Math.max(0, Math.min(this.to - 1, to)), this.to);
    else this.set(this.from, Math.min(this.count, Math.max(this.from + 1, to)));
  }

  say() {
    const { from, to } = this;
    const inside = this.weights.slice(from, to).reduce((a, b) => a + b, 0);
    const where = this.onLoad ? "of the load" : "from its first sample";
    const ratio = this.isWhole ? "" : `, ${percent(inside / this.sum)} of the profile`;
    this.part.textContent = `${this.clock(from)} to ${this.clock(to)} ${where}${ratio}`;
    this.always.hidden = this.isWhole;
    this.rects.forEach((rect, at) => {
      rect.classList.toggle("flame-out", at < from || at >= to);
    });
    for (const [name, at] of [
      ["from", from],
      ["to", to],
    ]) {
      const edge = this.edges[name];
      edge.style.left = `${(100 * at) / this.count}%`;
      edge.setAttribute("aria-valuemin", name === "from" ? 0 : from + 1);
      edge.setAttribute("aria-valuemax", name === "from" ? to - 1 : this.count);
      edge.setAttribute("aria-valuenow", at);
      edge.setAttribute("aria-valuetext", this.clock(at));
    }
  }

  // The slice under the pointer, or for an edge the nearest border between two.
  at(event, round) {
    const box = this.strip.getBoundingClientRect();
    return round(((event.clientX - box.left) / box.width) * this.count);
  }

  key(name, event) {
    const step = {
      ArrowLeft: -1,
      ArrowDown: -1,
      ArrowRight: 1,
      ArrowUp: 1,
      PageDown: -FAR,
      PageUp: FAR,
      Home: -this.count,
      End: this.count,
    }[event.key];
    if (event.key === "Escape") this.set(0, this.count);
    else if (!step) return;
    else if (event.shiftKey) {
      const by = Math.max(-this.from, Math.min(this.count - this.to, step));
      this.set(this.from + by, this.to + by);
    } else this.move(name, this[name] + step);
    event.preventDefault();
  }

  listen() {
    let brush = null;
    this.strip.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const edge = Object.keys(this.edges).find((name) => this.edges[name] === event.target);
      if (edge) brush = (moved) => this.move(edge, this.at(moved, Math.round));
      else {
        const inside = (moved) => Math.max(0, Math.min(this.count - 1, this.at(moved, Math.floor)));
        const began = inside(event);
        brush = (moved) => this.set(Math.min(began, inside(moved)), Math.max(began, inside(moved)) + 1);
        brush(event);
      }
      this.strip.setPointerCapture(event.pointerId);
      if (edge) this.edges[edge].focus();
      event.preventDefault();
    });
    this.strip.addEventListener("pointermove", (event) => brush?.(event));
    for (const end of ["pointerup", "pointercancel"]) {
      this.strip.addEventListener(end, () => {
        brush = null;
      });
    }
    for (const [name, edge] of Object.entries(this.edges)) {
      edge.addEventListener("keydown", (event) => this.key(name, event));
    }
    this.always.addEventListener("click", () => {
      this.set(0, this.count);
      this.edges.from.focus();
    });
  }
}
