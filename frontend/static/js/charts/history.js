// The history of one metric: a point per night with its spread, a colour per line (recipe, parameters, and the variant
// where one experiment has several of these), what changed around them as lines.
// Machines that are measured in turn (`in_turn`) have a line each: one line through both would go up and down.

import { faded, options, theme } from "./base.js";
import { day, format } from "./format.js";

const MOST_MEDIANS = 5;
const figures = new Set();

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Trends that were shared before lines had names tell the recipe.
const lineOf = (point) => point.line ?? (point.recipe || "imported");

export function toDatasets(json) {
  const lines = new Map();
  for (const point of json.points) {
    const name = json.in_turn ? `${lineOf(point)} on ${point.environment}` : lineOf(point);
    if (!lines.has(name)) lines.set(name, []);
    lines.get(name).push({ x: Date.parse(point.at), y: point.value, point });
  }
  return [...lines].map(([label, data]) => ({ label, data }));
}

// "−7.0 %" as the pages write it (templatetags/units.py).
export function signed(ratio) {
  if (ratio === null || ratio === undefined) return "from 0";
  const size = Math.abs(ratio * 100);
  return `${ratio < 0 ? "−" : "+"}${size >= 100 ? size.toFixed(0) : size.toFixed(1)} %`;
}

// The stretches between two changes of the machine or the tool: [from, to, what is new], open at both ends.
export function bands(json) {
  const starts = (json.environments ?? []).map((one) => ({ from: Date.parse(one.at), text: one.text }));
  return starts.map((one, index) => ({ ...one, to: starts[index + 1]?.from }));
}

function line(colour, more) {
  return { type: "line", borderColor: colour, borderWidth: 1, ...more };
}

function label(content, colours, colour, position) {
  return {
    display: true,
    content,
    position,
    backgroundColor: colours.surface,
    color: colour,
    font: { size: 10, weight: "normal" },
    padding: 2,
  };
}

// What fits beside a line; the table has the whole text.
export function shortened(text, letters = 28) {
  return text.length > letters ? `${text.slice(0, letters - 1).trimEnd()}…` : text;
}

// Where the machine changed, every other stretch shaded.
function machines(json, colours) {
  const found = {};
  bands(json).forEach((band, index) => {
    if (index % 2 === 0) {
      const box = {
        type: "box",
        xMin: band.from,
        backgroundColor: faded(colours.warn, 0.06),
        borderWidth: 0,
        drawTime: "beforeDatasetsDraw",
      };
      found[`band${index}`] = band.to === undefined ? box : { ...box, xMax: band.to };
    }
    found[`environment${index}`] = line(colours.warn, {
      xMin: band.from,
      xMax: band.from,
      borderDash: [2, 3],
      label: label(band.text, colours, colours.warn, "end"),
    });
  });
  return found;
}

function notes(json, colours) {
  const found = {};
  (json.notes ?? []).forEach((note, index) => {
    const x = Date.parse(note.at);
    found[`note${index}`] = line(colours.text, {
      xMin: x,
      xMax: x,
      borderDash: [1, 3],
      label: label(shortened(note.text), colours, colours.text, index % 2 ? "75%" : "60%"),
    });
  });
  return found;
}

function changePoints(json, colours) {
  const found = {};
  (json.changes ?? []).forEach((change, index) => {
    const colour = change.worse ? colours.bad : colours.good;
    const x = Date.parse(change.at);
    found[`change${index}`] = line(colour, {
      xMin: x,
      xMax: x,
      borderWidth: 1.5,
      borderDash: change.state === "suspected" ? [5, 4] : [],
      label: label(signed(change.change_ratio), colours, colour, index % 2 ? "35%" : "15%"),
      click: () => {
        location.href = change.url;
      },
    });
  });
  return found;
}

function annotations(json, colours) {
  const found = {};
  if (json.points.length > 2 && toDatasets(json).length === 1) {
    const value = median(json.points.map((point) => point.value));
    found.median = line(colours.faint, {
      yMin: value,
      yMax: value,
      borderDash: [4, 4],
      drawTime: "beforeDatasetsDraw",
    });
  }
  (json.levels ?? []).forEach((level, index) => {
    found[`expected${index}`] = line(colours.good, {
      yMin: level.value,
      yMax: level.value,
      label: label(`expected${level.recipe ? `, ${level.recipe}` : ""}`, colours, colours.good, "start"),
    });
  });
  return { ...found, ...machines(json, colours), ...notes(json, colours), ...changePoints(json, colours) };
}

function rangeInAddress() {
  const query = new URLSearchParams(location.search);
  const read = (name) => (query.get(name) ? Date.parse(query.get(name)) : NaN);
  return { min: read("from"), max: read("to") };
}

// Whoever shares a zoomed chart shares what is seen: the links beside the charts get the range, too.
function writeRange(min, max) {
  const address = new URL(location.href);
  if (min === undefined) {
    address.searchParams.delete("from");
    address.searchParams.delete("to");
  } else {
    address.searchParams.set("from", `${new Date(min).toISOString().slice(0, 19)}Z`);
    address.searchParams.set("to", `${new Date(max).toISOString().slice(0, 19)}Z`);
  }
  history.replaceState(history.state, "", address);
  for (const link of document.querySelectorAll("a[data-share-range]")) {
    const shared = new URL(link.href);
    for (const name of ["from", "to"]) {
      if (address.searchParams.has(name)) shared.searchParams.set(name, address.searchParams.get(name));
      else shared.searchParams.delete(name);
    }
    link.href = shared.href;
  }
}

// What the server is asked for when the page is zoomed in: of a long series it shows every run only in a part of it.
export function parameters() {
  const query = new URLSearchParams(location.search);
  return query.get("from") && query.get("to") ? { from: query.get("from"), to: query.get("to") } : {};
}

function showRange(min, max) {
  for (const figure of figures) {
    if (!figure.chart?.canvas?.isConnected) continue;
    if (figure.figure.dataset.url && (figure.json.thinned || figure.isPart)) {
      figure.offerReset(min !== undefined);
      figure.start();
      continue;
    }
    figure.chart.options.scales.x.min = min;
    figure.chart.options.scales.x.max = max;
    figure.chart.update("none");
    figure.offerReset(min !== undefined);
  }
}

export function zoomed(chart) {
  writeRange(chart.scales.x.min, chart.scales.x.max);
  showRange(chart.scales.x.min, chart.scales.x.max);
}

export function reset() {
  writeRange();
  showRange();
}

// A line per machine; suspect runs are triangles, the runs that are compared are larger.
function styled(json, colours) {
  const marked = new Set(json.highlight);
  return toDatasets(json).map((dataset, index) => {
    const colour = colours.series[index % colours.series.length];
    const large = (raw) => raw.point.runs.some((number) => marked.has(number));
    return {
      ...dataset,
      parsing: false,
      borderColor: colour,
      backgroundColor: colour,
      borderWidth: 1,
      pointRadius: dataset.data.map((raw) => (large(raw) ? 6 : 3)),
      pointBorderWidth: dataset.data.map((raw) => (large(raw) ? 2 : 1)),
      pointBorderColor: dataset.data.map((raw) => (large(raw) ? colours.strong : colour)),
      pointStyle: dataset.data.map((raw) => (raw.point.validity === "suspect" ? "triangle" : "circle")),
    };
  });
}

// What a point is made of: "Run #7", or "Runs #7 to #11".
export function runs(point) {
  if (point.runs.length === 1) return `Run #${point.number}`;
  return `Runs #${point.number} to #${point.runs.at(-1)}`;
}

// How far the runs of a point lie from its mean, one standard deviation up and down.
const spreads = {
  id: "spreads",
  beforeDatasetsDraw(chart) {
    const { ctx, scales, chartArea } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(chartArea.left, chartArea.top, chartArea.width, chartArea.height);
    ctx.clip();
    ctx.lineWidth = 1;
    chart.data.datasets.forEach((dataset, index) => {
      if (!chart.isDatasetVisible(index)) return;
      ctx.strokeStyle = dataset.borderColor;
      for (const { x, y, point } of dataset.data) {
        if (point.spread === null) continue;
        const at = scales.x.getPixelForValue(x);
        ctx.beginPath();
        ctx.moveTo(at, scales.y.getPixelForValue(y - point.spread));
        ctx.lineTo(at, scales.y.getPixelForValue(y + point.spread));
        ctx.stroke();
      }
    });
    ctx.restore();
  },
};

export function draw(canvas, json, figure) {
  const colours = theme();
  figures.add(figure);
  const { unit } = json.metric;
  const x = {
    type: "time",
    time: {
      minUnit: "minute",
      tooltipFormat: "yyyy-MM-dd HH:mm",
      displayFormats: { minute: "HH:mm", hour: "MMM d HH:mm", day: "MMM d", week: "MMM d", month: "MMM yyyy" },
    },
  };
  const values = json.points.map((point) => point.value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const nearZero = low >= 0 && low < (high - low) / 2;
  const config = options({ unit, x, zero: unit === "ratio" || nearZero, grace: unit === "ratio" ? 0 : "6%" });
  const range = rangeInAddress();
  if (!Number.isNaN(range.min) && !Number.isNaN(range.max)) {
    config.scales.x.min = range.min;
    config.scales.x.max = range.max;
    figure.offerReset(true);
  }
  config.interaction = { mode: "nearest", intersect: true };
  config.plugins.legend.labels.usePointStyle = true;
  config.plugins.legend.labels.boxHeight = 6;
  config.plugins.tooltip.callbacks = {
    title: (items) => runs(items[0].raw.point),
    label: (item) => ` ${format(item.parsed.y, unit)}`,
    afterLabel: (item) => {
      const { point } = item.raw;
      return [
        point.spread === null ? "" : `spread ${format(point.spread, unit)}, mean of ${point.runs.length} runs`,
        lineOf(point),
        day(point.at),
        point.validity === "suspect" ? "suspect" : "",
        ...Object.entries(point.labels).map(([k, v]) => `${k}=${v}`),
      ].filter(Boolean);
    },
  };
  config.plugins.annotation = { annotations: annotations(json, colours) };
  config.onHover = (event, items) => (event.native.target.style.cursor = items.length ? "pointer" : "crosshair");
  config.onClick = (_, items, chart) => {
    if (!items.length) return;
    const { point } = chart.data.datasets[items[0].datasetIndex].data[items[0].index];
    location.href = json.run_url.replace(/\/0\/$/, `/${point.number}/`);
  };
  return new Chart(canvas, {
    type: "line",
    data: { datasets: styled(json, colours) },
    options: config,
    plugins: [spreads],
  });
}

function medians(json) {
  const { unit } = json.metric;
  const middle = (data) => format(median(data.map((raw) => raw.y)), unit);
  const lines = toDatasets(json);
  if (lines.length === 1) return `median (dashed) ${middle(lines[0].data)}`;
  const shown = lines.slice(0, MOST_MEDIANS).map((one) => `${middle(one.data)} of ${one.label}`);
  return `medians ${shown.join(", ")}${lines.length > shown.length ? ` and ${lines.length - shown.length} lines more` : ""}`;
}

export function summary(json) {
  const { points, metric } = json;
  if (points.length === 0) return "No usable run in this range has this figure.";
  const values = points.map((point) => point.value);
  const last = points.at(-1);
  const suspects = points.filter((point) => point.validity === "suspect").length;
  const changes = (json.changes ?? []).map(
    (one) =>
      `${signed(one.change_ratio)} with #${one.number} (${one.state === "suspected" ? "suspected, " : ""}${one.triage})`,
  );
  const levels = (json.levels ?? []).map((level) => format(level.value, metric.unit));
  return (
    `${points.length} point${points.length === 1 ? "" : "s"}${json.truncated ? " (the newest)" : ""}` +
    `${json.thinned ? ", evenly chosen from more (zoom in to see each one)" : ""}: ` +
    `${format(Math.min(...values), metric.unit)} to ` +
    `${format(Math.max(...values), metric.unit)}, ${medians(json)}; last #${last.number} ` +
    `${format(last.value, metric.unit)}.${suspects ? ` Triangles: ${suspects} suspect.` : ""}` +
    (changes.length
      ? ` Change points: ${changes.slice(-5).join(", ")}${changes.length > 5 ? ` and ${changes.length - 5} earlier` : ""}.`
      : "") +
    ((json.notes ?? []).length
      ? ` Notes: ${json.notes.map((note) => `${day(note.at)} ${note.text}`).join("; ")}.`
      : "") +
    (levels.length ? ` Expected: ${levels.join(", ")}.` : "")
  );
}

export function table(json) {
  const changes = new Map(
    (json.changes ?? []).map((one) => [
      one.number,
      `${signed(one.change_ratio)}${one.state === "suspected" ? " suspected" : ""}`,
    ]),
  );
  const rows = [...json.points]
    .reverse()
    .map((p) => [
      `#${p.number}`,
      day(p.at),
      format(p.value, json.metric.unit),
      p.spread === null ? "" : format(p.spread, json.metric.unit),
      p.runs.length,
      changes.get(p.number) ?? "",
      lineOf(p),
      p.validity,
      p.environment ?? "",
    ]);
  const notes = [...(json.notes ?? [])]
    .reverse()
    .map((note) => ["note", day(note.at), "", "", "", "", note.text, note.author, ""]);
  rows.unshift(...notes);
  return {
    head: [
      "Run",
      "Finished (UTC)",
      json.metric.label,
      "Spread",
      "Runs",
      "Change point",
      "Line",
      "Validity",
      "Environment",
    ],
    rows,
  };
}
