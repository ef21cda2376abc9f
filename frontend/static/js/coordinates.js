// A tuning search over parallel axes: a line per trial, an axis per parameter, the last one the objective. Each axis
// has a brush, and the table of trials shows what the brushes leave.

import { Brush } from "./brush.js";

const SVG = "http://www.w3.org/2000/svg";
const STEPS = 40; // edges along an axis without choices
const ASIDE = -0.14; // the place below an axis for trials without a value there
const LOWEST = -0.2;
const BETWEEN = -0.05;
const MOST_TICKS = 9;
const number = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });
const change = (ratio) => `${ratio >= 1 ? "+" : "−"}${(100 * Math.abs(ratio - 1)).toFixed(1)} %`;

function made(name, className, text = "") {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
}

// The value of an axis without choices at a fraction of it.
function valueAt(axis, fraction) {
  const at = Math.max(0, Math.min(1, fraction));
  const value = axis.log ? axis.low * (axis.high / axis.low) ** at : axis.low + at * (axis.high - axis.low);
  return axis.whole ? Math.round(value) : value;
}

function textAt(axis, fraction) {
  const value = valueAt(axis, fraction);
  return axis.isObjective ? change(value) : number.format(value);
}

// Where the edges of a brush may stand: between choices, or at so many steps; the first part is the place aside.
export function placesOf(axis) {
  const last = axis.choices.length - 1;
  const inner =
    last > 0
      ? axis.choices.slice(1).map((_, at) => (at + 0.5) / last)
      : Array.from({ length: STEPS - 1 }, (_, at) => (at + 1) / STEPS);
  return [...(axis.conditional ? [LOWEST] : []), BETWEEN, ...inner, 1 - BETWEEN];
}

function ticksOf(axis) {
  const last = axis.choices.length - 1;
  const found = axis.choices.map((text, at) => ({ at: last > 0 ? at / last : 0.5, text }));
  const ends = found.length > MOST_TICKS ? [found[0], found[last]] : found;
  // Between 1 and 4 there is no whole number in the middle.
  const hasMiddle = !axis.whole || axis.log || (axis.low + axis.high) % 2 === 0;
  const own = last >= 0 ? ends : (hasMiddle ? [0, 0.5, 1] : [0, 1]).map((at) => ({ at, text: textAt(axis, at) }));
  const aside = axis.isObjective ? "no figure" : "not used";
  return axis.conditional ? [...own, { at: ASIDE, text: aside }] : own;
}

function objective(json) {
  const logs = json.lines.map((line) => line.log_ratio).filter((log) => log !== null);
  const [low, high] = [Math.min(-0.01, ...logs), Math.max(0.01, ...logs)];
  return {
    name: `Against the default (${json.higher_is_better ? "higher" : "lower"} is better)`,
    choices: [],
    low: Math.exp(low),
    high: Math.exp(high),
    log: true,
    whole: false,
    conditional: true,
    isObjective: true,
    place: (log) => (log === null ? null : (log - low) / (high - low)),
  };
}

class AxisBrush extends Brush {
  constructor(axis, strip, changed) {
    const edges = {};
    for (const [name, word] of [
      ["from", "from"],
      ["to", "to"],
    ]) {
      const edge = made("div", "coords-edge");
      const told = { role: "slider", tabindex: "0", "aria-orientation": "vertical" };
      for (const [key, value] of Object.entries(told)) edge.setAttribute(key, value);
      edge.setAttribute("aria-label", `${axis.name}: show trials ${word}`);
      edge.dataset.coordsEdge = name;
      edges[name] = edge;
    }
    super({ strip, edges, places: placesOf(axis), upright: true, changed });
    this.axis = axis;
    this.part = made("div", "coords-brush");
    strip.append(this.part, edges.from, edges.to);
    for (const { at, text } of ticksOf(axis)) {
      const tick = made("span", "coords-tick", text);
      tick.title = text;
      tick.style.bottom = `${100 * this.share(at)}%`;
      strip.append(tick);
    }
    this.say();
  }

  share(place) {
    return (place - LOWEST) / (1 - BETWEEN - LOWEST);
  }

  // All axes stand at the same height, with or without a place aside.
  along(at) {
    return this.share(this.places[at]);
  }

  told(at, edge) {
    const { axis, places } = this;
    const place = places[at];
    if (place === LOWEST || (edge === "to" && axis.conditional && place === BETWEEN)) return ticksOf(axis).at(-1).text;
    if (axis.choices.length < 1) return textAt(axis, place);
    const last = axis.choices.length - 1;
    const choice = edge === "from" ? Math.ceil(place * last) : Math.floor(place * last);
    return axis.choices[Math.max(0, Math.min(last, choice))];
  }

  leaves(place) {
    const at = place ?? ASIDE;
    return this.isWhole || (at >= this.places[this.from] && at <= this.places[this.to]);
  }

  say() {
    super.say();
    const [low, high] = [this.along(this.from), this.along(this.to)];
    this.part.hidden = this.isWhole;
    this.part.style.bottom = `${100 * low}%`;
    this.part.style.height = `${100 * (high - low)}%`;
  }
}

class Coordinates {
  constructor(element) {
    this.element = element;
    const one = (name) => element.querySelector(`[data-coords-${name}]`);
    [this.plot, this.said, this.clear, this.all, this.one] = ["plot", "said", "clear", "all", "one"].map(one);
    this.clear.addEventListener("click", () => {
      for (const column of this.columns) column.brush.clear();
      this.columns[0].brush.edges.from.focus();
    });
    this.all.addEventListener("click", () => {
      for (const column of this.columns) column.isHidden = false;
      this.arrange();
      this.columns[0].brush.edges.from.focus();
    });
    this.plot.addEventListener("pointerover", (event) => this.tell(event.target));
    document.body.addEventListener("charts-changed", () => this.load());
    document.body.addEventListener("htmx:afterSettle", () => this.filter());
  }

  async load() {
    const answer = await fetch(this.element.dataset.url, { headers: { Accept: "application/json" } });
    if (!answer.ok) {
      this.said.textContent = `The trials could not be loaded: the server answered ${answer.status}.`;
      return;
    }
    this.json = (await answer.json()).coordinates;
    this.element.querySelector("[data-coords-best]").textContent = this.json.is_confirmed
      ? "confirmed to be better"
      : "looks best: selected, optimistic";
    this.build();
  }

  // A live search is read again and again: what was brushed stays where the same values are.
  build() {
    const goal = objective(this.json);
    const before = new Map((this.columns ?? []).map((column) => [column.axis.name, column]));
    const focused = document.activeElement?.closest?.(".coords-edge");
    const axes = [...this.json.axes, goal];
    this.columns = axes.map((axis, index) => {
      const place = (line) => (axis.isObjective ? goal.place(line.log_ratio) : line.places[index]);
      return this.column(axis, place, before.get(axis.name));
    });
    if (before.size) {
      const order = [...before.keys()];
      this.columns.sort((a, b) => order.indexOf(a.axis.name) - order.indexOf(b.axis.name));
    }
    this.arrange();
    if (focused) {
      const same = this.columns.find(({ axis }) => axis.name === focused.closest(".coords-axis").dataset.axis);
      same?.brush.edges[focused.dataset.coordsEdge].focus();
    }
  }

  column(axis, place, before) {
    const element = made("div", "coords-axis");
    element.dataset.axis = axis.name;
    const name = made("h3", "", "");
    for (const part of axis.name.split(/(?<=_)/)) name.append(part, document.createElement("wbr"));
    name.title = axis.name;
    const tools = made("div", "coords-tools");
    const strip = made("div", "coords-strip");
    element.append(name, tools, strip);
    const brush = new AxisBrush(axis, strip, () => this.filter());
    const column = { axis, place, element, brush, isHidden: before?.isHidden ?? false };
    if (!axis.isObjective) {
      this.tool(tools, "‹", `Move ${axis.name} to the left`, () => this.shift(column));
      this.tool(tools, "×", `Hide ${axis.name}`, () => this.hide(column));
    }
    if (before && !before.brush.isWhole) this.keep(brush, before.brush);
    return column;
  }

  keep(brush, before) {
    const nearest = (at) => {
      const place = before.places[at];
      const log = Math.log(valueAt(before.axis, place));
      const inside = place > 0 && place < 1;
      const now = before.axis.isObjective && inside ? brush.axis.place(log) : place;
      const away = brush.places.map((one) => Math.abs(one - now));
      return away.indexOf(Math.min(...away));
    };
    const from = Math.min(nearest(before.from), brush.count - 1);
    [brush.from, brush.to] = [from, Math.max(from + 1, nearest(before.to))];
    brush.say();
  }

  tool(place, text, label, act) {
    const button = made("button", "", text);
    button.type = "button";
    button.title = label;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    place.append(button);
  }

  shift(column) {
    const shown = this.columns.filter((one) => !one.isHidden);
    const left = shown[shown.indexOf(column) - 1];
    if (!left) return;
    this.columns.splice(this.columns.indexOf(column), 1);
    this.columns.splice(this.columns.indexOf(left), 0, column);
    this.arrange();
    column.element.querySelector("button").focus();
  }

  // An axis that nobody sees leaves out no trials.
  hide(column) {
    column.isHidden = true;
    column.brush.clear();
    this.arrange();
    this.all.focus();
  }

  arrange() {
    const shown = this.columns.filter((column) => !column.isHidden);
    this.all.hidden = shown.length === this.columns.length;
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("class", "coords-lines");
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("aria-hidden", "true");
    this.plot.replaceChildren(picture, ...shown.map((column) => column.element));
    const box = this.plot.getBoundingClientRect();
    picture.setAttribute("viewBox", `0 0 ${Math.max(1, Math.round(box.width))} 1000`);
    const across = shown.map(({ brush }) => {
      const strip = brush.strip.getBoundingClientRect();
      return strip.left + strip.width / 2 - box.left;
    });
    const weight = (line) => (line.is_best ? 2 : line.is_default ? 1 : 0);
    this.lines = [...this.json.lines]
      .sort((a, b) => weight(a) - weight(b))
      .map((line) => {
        const drawn = document.createElementNS(SVG, "polyline");
        const points = shown.map(({ brush, place }, at) => {
          const y = 1000 * (1 - brush.share(place(line) ?? ASIDE));
          return `${across[at].toFixed(1)},${y.toFixed(1)}`;
        });
        drawn.setAttribute("points", points.join(" "));
        const measured = line.outcome === "measured" || line.outcome === "limit";
        const mark = line.is_best && measured ? "best" : line.is_default && measured ? "default" : line.outcome;
        drawn.setAttribute("class", `coords-${mark}`);
        drawn.dataset.trial = line.position;
        picture.append(drawn);
        return { line, drawn };
      });
    this.filter();
  }

  tell(target) {
    const line = this.json?.lines.find(({ position }) => String(position) === target.dataset?.trial);
    if (!line) return;
    const figure = line.log_ratio === null ? line.outcome : `${change(Math.exp(line.log_ratio))} against the default`;
    this.one.textContent = `Trial ${line.position}: ${line.config}; ${figure}`;
  }

  filter() {
    if (!this.columns) return;
    const brushed = this.columns.filter(({ brush }) => !brush.isWhole);
    const left = new Set();
    for (const { line, drawn } of this.lines) {
      const stays = brushed.every(({ brush, place }) => brush.leaves(place(line)));
      if (stays) left.add(String(line.position));
      drawn.classList.toggle("coords-out", !stays);
    }
    const some = brushed.length > 0;
    this.clear.hidden = !some;
    for (const row of document.querySelectorAll("[data-coords-trials] [data-trial]")) {
      row.hidden = some && !left.has(row.dataset.trial);
    }
    const count = `${left.size} of ${this.lines.length} trials`;
    const where = brushed.map(({ axis, brush }) => {
      return `${axis.isObjective ? "the figure" : axis.name} from ${brush.told(brush.from, "from")} to ${brush.told(brush.to, "to")}`;
    });
    const said = some
      ? `${count}: ${where.join("; ")}`
      : `${this.lines.length} ${this.lines.length === 1 ? "trial" : "trials"}. Drag along an axis to choose.`;
    if (this.said.textContent !== said) this.said.textContent = said;
    for (const place of document.querySelectorAll("[data-coords-left]")) {
      place.textContent = some ? `; ${count}, as brushed above` : "";
    }
  }
}

for (const element of document.querySelectorAll("[data-coords]")) {
  const made = new Coordinates(element);
  made.load();
  new ResizeObserver(() => made.columns && made.arrange()).observe(element);
}
