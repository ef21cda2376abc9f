// The history of one metric: a point per run, a colour per recipe, what changed around them as lines.

import { options, theme } from "./base.js";
import { day, format } from "./format.js";

const figures = new Set();

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function toDatasets(json) {
  const byRecipe = new Map();
  for (const point of json.points) {
    const name = point.recipe || "imported";
    if (!byRecipe.has(name)) byRecipe.set(name, []);
    byRecipe.get(name).push({ x: Date.parse(point.at), y: point.value, point });
  }
  return [...byRecipe].map(([label, data]) => ({ label, data }));
}

// Vertical lines where the hardware behind the points changes.
export function environmentMarkers(json) {
  const markers = [];
  for (let i = 1; i < json.points.length; i++) {
    const [before, after] = [json.points[i - 1], json.points[i]];
    if (before.environment !== after.environment) markers.push({ x: Date.parse(after.at), text: after.environment });
  }
  return markers.length <= 20 ? markers : [];
}

function annotations(json, colours) {
  const found = {};
  if (json.points.length > 2) {
    const value = median(json.points.map((point) => point.value));
    found.median = {
      type: "line", yMin: value, yMax: value, borderColor: colours.faint, borderWidth: 1, borderDash: [4, 4], drawTime: "beforeDatasetsDraw",
    };
  }
  environmentMarkers(json).forEach((marker, index) => {
    found[`environment${index}`] = {
      type: "line", xMin: marker.x, xMax: marker.x, borderColor: colours.warn, borderWidth: 1, borderDash: [2, 3],
      label: { display: true, content: `hardware ${marker.text}`, position: "end", backgroundColor: colours.surface, color: colours.warn, font: { size: 10, weight: "normal" }, padding: 2 },
    };
  });
  return found;
}

function rangeInAddress() {
  const query = new URLSearchParams(location.search);
  const read = (name) => (query.get(name) ? Date.parse(query.get(name)) : NaN);
  return { min: read("from"), max: read("to") };
}

function writeRange(min, max) {
  const address = new URL(location.href);
  if (min === undefined) {
    address.searchParams.delete("from");
    address.searchParams.delete("to");
  } else {
    address.searchParams.set("from", new Date(min).toISOString().slice(0, 19) + "Z");
    address.searchParams.set("to", new Date(max).toISOString().slice(0, 19) + "Z");
  }
  history.replaceState(history.state, "", address);
}

function showRange(min, max) {
  for (const figure of figures) {
    if (!figure.chart?.canvas?.isConnected) continue;
    figure.chart.options.scales.x.min = min;
    figure.chart.options.scales.x.max = max;
    figure.chart.update("none");
    figure.offerReset(min !== undefined);
  }
}

export function reset() {
  writeRange();
  showRange();
}

export function draw(canvas, json, figure) {
  const colours = theme();
  figures.add(figure);
  const { unit } = json.metric;
  const marked = new Set(json.highlight);
  const x = { type: "time", time: { minUnit: "minute", tooltipFormat: "yyyy-MM-dd HH:mm", displayFormats: { minute: "HH:mm", hour: "MMM d HH:mm", day: "MMM d", week: "MMM d", month: "MMM yyyy" } } };
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
    title: (items) => `Run #${items[0].raw.point.number}`,
    label: (item) => ` ${format(item.parsed.y, unit)}`,
    afterLabel: (item) => {
      const { point } = item.raw;
      return [point.recipe, day(point.at), point.validity === "suspect" ? "suspect" : "", ...Object.entries(point.labels).map(([k, v]) => `${k}=${v}`)].filter(Boolean);
    },
  };
  config.plugins.annotation = { annotations: annotations(json, colours) };
  config.plugins.zoom = {
    zoom: {
      mode: "x",
      drag: { enabled: true, threshold: 6 },
      onZoomComplete: ({ chart }) => {
        writeRange(chart.scales.x.min, chart.scales.x.max);
        showRange(chart.scales.x.min, chart.scales.x.max);
      },
    },
  };
  config.onHover = (event, items) => (event.native.target.style.cursor = items.length ? "pointer" : "crosshair");
  config.onClick = (_, items, chart) => {
    if (!items.length) return;
    const { point } = chart.data.datasets[items[0].datasetIndex].data[items[0].index];
    location.href = json.run_url.replace(/\/0\/$/, `/${point.number}/`);
  };
  const datasets = toDatasets(json).map((dataset, index) => {
    const colour = colours.series[index % colours.series.length];
    const large = (raw) => marked.has(raw.point.number);
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
  return new Chart(canvas, { type: "line", data: { datasets }, options: config });
}

export function summary(json) {
  const { points, metric } = json;
  if (points.length === 0) return "No finished, valid run in this range.";
  const values = points.map((point) => point.value);
  const last = points.at(-1);
  const suspects = points.filter((point) => point.validity === "suspect").length;
  return (
    `${points.length} runs${json.truncated ? " (the newest)" : ""}: ${format(Math.min(...values), metric.unit)} to ` +
    `${format(Math.max(...values), metric.unit)}, median (dashed) ${format(median(values), metric.unit)}; last #${last.number} ` +
    `${format(last.value, metric.unit)}.${suspects ? ` Triangles: ${suspects} suspect.` : ""}`
  );
}

export function table(json) {
  const rows = [...json.points].reverse().map((p) => [`#${p.number}`, day(p.at), format(p.value, json.metric.unit), p.recipe || "imported", p.validity, p.environment ?? ""]);
  return { head: ["Run", "Finished (UTC)", json.metric.label, "Recipe", "Validity", "Hardware"], rows };
}
