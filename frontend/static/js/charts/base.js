// What all charts share: colours of the theme, axes, data, summary, "view as table".

import { format } from "./format.js";
import { download } from "./picture.js";
import { inAddress, show, shownBy, toAddress, zoomOptions } from "./zoom.js";

const SERIES = 8;

// A custom property with light-dark() is resolved only when an element uses it as a colour.
function resolved(probe, name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export function theme() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const read = (name) => resolved(probe, name);
  const colours = {
    text: read("--text-2"),
    faint: read("--text-3"),
    grid: read("--chart-grid"),
    surface: read("--surface"),
    strong: read("--text"),
    warn: read("--warn"),
    good: read("--good"),
    bad: read("--bad"),
    series: Array.from({ length: SERIES }, (_, index) => read(`--series-${index + 1}`)),
  };
  probe.remove();
  return colours;
}

export function faded(colour, ratio) {
  return colour.replace(/^rgba?\((\d+), (\d+), (\d+).*\)$/, `rgba($1, $2, $3, ${ratio})`);
}

// Options that every chart starts from; `unit` is the y axis, `x` the whole x scale, `zoom` the axes that can be zoomed.
export function options({ unit, x, zero = true, legend = true, grace = "6%", zoom = "x" }) {
  const colours = theme();
  const font = { family: getComputedStyle(document.body).fontFamily, size: 11 };
  return {
    animation: false,
    maintainAspectRatio: false,
    responsive: true,
    interaction: { mode: "nearest", intersect: false, axis: "x" },
    elements: { point: { radius: 0, hoverRadius: 4, hitRadius: 8 }, line: { borderWidth: 1.5 } },
    scales: {
      x: {
        grid: { color: colours.grid },
        border: { color: colours.grid },
        ...x,
        ticks: { color: colours.text, font, maxRotation: 0, autoSkipPadding: 16, ...x?.ticks },
      },
      y: {
        beginAtZero: zero,
        grace,
        grid: { color: colours.grid },
        border: { display: false },
        ticks: {
          color: colours.text,
          font,
          maxTicksLimit: 6,
          callback: (value) => (value === 0 ? "0" : format(value, unit)),
        },
      },
    },
    plugins: {
      zoom: zoomOptions(zoom),
      legend: {
        display: legend,
        position: "bottom",
        align: "start",
        labels: { color: colours.text, font, boxWidth: 10, boxHeight: 2, padding: 12 },
      },
      tooltip: {
        backgroundColor: colours.strong,
        titleColor: colours.surface,
        bodyColor: colours.surface,
        titleFont: { ...font, weight: 600 },
        bodyFont: font,
        padding: 8,
        cornerRadius: 5,
        boxWidth: 8,
        boxHeight: 8,
        callbacks: { label: (item) => ` ${item.dataset.label}: ${format(item.parsed.y, unit)}` },
      },
    },
  };
}

async function load(figure, parameters) {
  if (figure.dataset.source) return JSON.parse(document.getElementById(figure.dataset.source).textContent);
  const address = new URL(figure.dataset.url, location.href);
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
  const response = await fetch(address, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.json();
}

function tableOf({ head, rows }) {
  const table = document.createElement("table");
  table.className = "table";
  const top = table.createTHead().insertRow();
  for (const text of head) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    top.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const text of row) line.insertCell().textContent = text;
  }
  return table;
}

// One <figure data-chart>: fetches its JSON, draws it with its module, and keeps text and table beside it.
export class Figure {
  constructor(figure, module) {
    this.figure = figure;
    this.module = module;
    this.key = figure.id || figure.dataset.source || figure.dataset.chart;
    this.canvas = figure.querySelector("canvas");
    this.text = figure.querySelector("[data-chart-summary]");
    this.tablePlace = figure.querySelector(".chart-table");
    this.waiting = [];
    figure.querySelector("[data-chart-toggle]").addEventListener("click", (event) => this.toggle(event.currentTarget));
    figure.querySelector("[data-chart-reset]").addEventListener("click", () => this.reset());
    figure.querySelector("[data-chart-png]").addEventListener("click", () => this.chart && this.save());
    this.canvas.addEventListener("chartzoom", () => this.zoomed());
    figure.addEventListener("runevent", (event) => this.append(event.detail));
    document.addEventListener("themechange", () => this.draw());
  }

  // A module may keep its view in its own way (`parameters`, `zoomed`, `reset`); else it is a range of x, perhaps of y.
  parameters() {
    if (this.module.parameters) return this.module.parameters();
    const shown = this.module.ranged ? inAddress(this.key) : null;
    return shown ? { from_s: shown.x.min, to_s: shown.x.max } : {};
  }

  async start() {
    try {
      const parameters = this.parameters();
      this.json = await load(this.figure, parameters);
      this.isPart = Object.keys(parameters).length > 0;
    } catch (error) {
      this.text.textContent = `The figures could not be loaded: ${error.message}.`;
      return;
    }
    for (const event of this.waiting.splice(0)) this.module.append?.(this.json, event);
    this.draw();
  }

  draw() {
    if (!this.json) return;
    this.chart?.destroy();
    const empty = this.module.toDatasets(this.json).length === 0;
    this.canvas.parentElement.hidden = empty;
    this.figure.querySelector("[data-chart-png]").hidden = empty;
    this.chart = empty ? null : this.module.draw(this.canvas, this.json, this);
    const shown = this.module.zoomed ? null : inAddress(this.key);
    if (this.chart && shown) show(this.chart, shown);
    if (!this.module.zoomed) this.offerReset(Boolean(shown));
    this.describe();
  }

  // The address holds what is shown; of a line that was thinned out the server has more of a smaller part.
  zoomed() {
    if (this.module.zoomed) return this.module.zoomed(this.chart);
    toAddress(this.key, shownBy(this.chart, this.chart.options.plugins.zoom.zoom.mode));
    this.offerReset(true);
    if (this.json.thinned || this.isPart) this.start();
  }

  save() {
    download(this.canvas, { title: this.figure.dataset.title, summary: this.text.textContent, colours: theme() });
  }

  reset() {
    if (this.module.reset) return this.module.reset(this);
    toAddress(this.key, null);
    if (this.isPart) this.start();
    else this.draw();
  }

  describe() {
    const summary = this.module.summary(this.json);
    this.text.textContent = summary;
    this.canvas.setAttribute("aria-label", `${this.figure.dataset.title}. ${summary}`);
    if (!this.tablePlace.hidden) this.tablePlace.replaceChildren(tableOf(this.module.table(this.json)));
  }

  // Events come in bursts: they are drawn together, at most once per frame and never in a hidden tab.
  append(event) {
    if (!this.json) {
      this.waiting.push(event);
      return;
    }
    if (!this.module.append?.(this.json, event) || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.chart && this.module.refresh) this.module.refresh(this.chart, this.json);
      else this.draw();
      this.describe();
    });
  }

  toggle(button) {
    const show = this.tablePlace.hidden;
    this.tablePlace.hidden = !show;
    button.setAttribute("aria-pressed", show);
    button.textContent = show ? "Hide table" : "View as table";
    if (show && this.json) this.tablePlace.replaceChildren(tableOf(this.module.table(this.json)));
  }

  offerReset(offer) {
    this.figure.querySelector("[data-chart-reset]").hidden = !offer;
  }
}
