// Latency against throughput, a point per step of the load: flat while there is room, steep where there is none left.

import { options, theme } from "./base.js";
import { format, plain } from "./format.js";

export function toDatasets(json) {
  const lines = [...new Set(json.points.map((point) => point.line))];
  return lines.map((line) => ({ label: line || json.label, data: json.points.filter((point) => point.line === line) }));
}

export function draw(canvas, json) {
  const colours = theme();
  const lines = toDatasets(json);
  const config = options({
    unit: "ms",
    legend: lines.length > 1,
    zoom: "xy",
    x: {
      type: "linear",
      beginAtZero: true,
      title: { display: true, text: "throughput, requests/s", color: colours.text },
      ticks: { callback: (value) => plain(value), maxTicksLimit: 8 },
    },
  });
  config.interaction = { mode: "nearest", intersect: false, axis: "xy" };
  config.plugins.tooltip.callbacks = {
    title: (items) => `${items[0].raw.name}: ${plain(items[0].raw.offered)} ${json.of}`,
    label: ({ raw }) => ` ${plain(raw.x)} requests/s, ${json.label} ${format(raw.y, "ms")}`,
  };
  if (json.objective_ms !== null) {
    config.plugins.annotation = {
      annotations: {
        objective: {
          type: "line",
          yMin: json.objective_ms,
          yMax: json.objective_ms,
          borderColor: colours.warn,
          borderWidth: 1,
          borderDash: [4, 4],
          label: {
            display: true,
            content: `objective ${format(json.objective_ms, "ms")}`,
            position: "start",
            backgroundColor: colours.surface,
            color: colours.warn,
            font: { size: 10, weight: "normal" },
            padding: 2,
          },
        },
      },
    };
  }
  const colour = (index) => colours.series[index % colours.series.length];
  const datasets = lines.map((dataset, index) => ({
    ...dataset,
    parsing: false,
    showLine: true,
    borderColor: colour(index),
    backgroundColor: colour(index),
    pointRadius: 4,
  }));
  return new Chart(canvas, { type: "scatter", data: { datasets }, options: config });
}

export function summary(json) {
  if (json.points.length === 0) return "No step of the load has a latency that counts yet.";
  const most = json.points.reduce((a, b) => (b.x > a.x ? b : a));
  const first = json.points[0];
  const at = (point) => `${format(point.y, "ms")} at ${plain(point.x)} requests/s`;
  return `${json.label} from ${at(first)} to ${at(most)}, the largest throughput (${plain(most.offered)} ${json.of}).`;
}

export function table(json) {
  const rows = json.points.map((point) => [point.name, plain(point.offered), plain(point.x), format(point.y, "ms")]);
  return { head: ["Run", json.of, "Throughput, requests/s", json.label], rows };
}
