// A part of an axis that one brushes: by mouse, by touch, by the keys of its two edges. Whoever shows it extends this.

const FAR = 5; // places that a page key moves an edge by

export class Brush {
  // `strip` holds the edges `from` and `to`. `places` are where an edge may stand, ascending along the strip, which
  // runs to the right, or upwards when it is `upright`. `changed` is called once for each picture of the screen.
  constructor({ strip, edges, places, upright, changed }) {
    Object.assign(this, { strip, edges, places, upright, changed });
    this.count = places.length - 1;
    [this.from, this.to] = [0, this.count];
    this.listen();
  }

  get isWhole() {
    return this.from === 0 && this.to === this.count;
  }

  // How far along the strip this place lies, from 0 to 1.
  along(at) {
    const { places, count } = this;
    return (places[at] - places[0]) / (places[count] - places[0]);
  }

  // What an edge tells at this place.
  told(at) {
    return String(this.places[at]);
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

  clear() {
    this.set(0, this.count);
  }

  move(edge, to) {
    if (edge === "from") this.set(Math.max(0, Math.min(this.to - 1, to)), this.to);
    else this.set(this.from, Math.min(this.count, Math.max(this.from + 1, to)));
  }

  say() {
    const { from, to } = this;
    for (const [name, at] of [
      ["from", from],
      ["to", to],
    ]) {
      const edge = this.edges[name];
      edge.style[this.upright ? "bottom" : "left"] = `${100 * this.along(at)}%`;
      edge.setAttribute("aria-valuemin", name === "from" ? 0 : from + 1);
      edge.setAttribute("aria-valuemax", name === "from" ? to - 1 : this.count);
      edge.setAttribute("aria-valuenow", at);
      edge.setAttribute("aria-valuetext", this.told(at, name));
    }
  }

  // How far along the strip the pointer is.
  ratio(event) {
    const box = this.strip.getBoundingClientRect();
    return this.upright ? (box.bottom - event.clientY) / box.height : (event.clientX - box.left) / box.width;
  }

  // The part between two places that the pointer is in.
  inside(event) {
    const ratio = this.ratio(event);
    const after = this.places.findIndex((_, at) => this.along(at) > ratio);
    return after < 0 ? this.count - 1 : Math.max(0, after - 1);
  }

  // The place that is nearest to the pointer.
  nearest(event) {
    const ratio = this.ratio(event);
    const away = this.places.map((_, at) => Math.abs(this.along(at) - ratio));
    return away.indexOf(Math.min(...away));
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
    if (event.key === "Escape") this.clear();
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
      if (edge) brush = (moved) => this.move(edge, this.nearest(moved));
      else {
        const began = this.inside(event);
        brush = (moved) => {
          const now = this.inside(moved);
          this.set(Math.min(began, now), Math.max(began, now) + 1);
        };
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
  }
}
