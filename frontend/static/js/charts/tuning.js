// A tuning search: the figure of each trial in order, and beside them the line of the default.

import { options, theme } from "./base.js";
import { plain } from "./format.js";

const KINDS = [
  { kind: "default", label: "default", style: "rect" },
  { kind: "search", label: "search", style: "circle" },
  { kind: "confirm", label: "confirmation", style: "triangle" },
  { kind: "revert", label: "smallest recipe", style: "crossRot" },
];

const kindOf = (trial) => {
  if (trial.is_default) return "default";
  return trial.purpose === "confirm" || trial.purpose === "revert" ? trial.purpose : "search";
};

export function toDatasets(json) {
  const measured = json.trials.filter((trial) => trial.figure !== null);
  return KINDS.map(({ kind, label, style }) => ({
    label,
    style,
    kind,
    data: measured
      .filter((trial) => kindOf(trial) === kind)
      .map((trial) => ({ x: trial.position, y: trial.figure, trial })),
  })).filter((dataset) => dataset.data.length > 0);
}

export function draw(canvas, json) {
  const colours = theme();
  const x = { type: "linear", ticks: { precision: 0 }, title: { display: true, text: "trial", color: colours.text } };
  const config = options({ unit: "count", zero: false, grace: "10%", zoom: "xy", x });
  config.scales.y.ticks.callback = (value) => plain(value);
  config.interaction = { mode: "nearest", intersect: true };
  config.plugins.legend.labels.usePointStyle = true;
  config.plugins.legend.labels.boxHeight = 6;
  config.plugins.tooltip.callbacks = {
    title: (items) => `trial ${items[0].raw.trial.position}, run #${items[0].raw.trial.run}`,
    label: ({ raw }) => ` ${plain(raw.y)}: ${raw.trial.config}`,
  };
  const colour = {
    default: colours.faint,
    search: colours.series[0],
    confirm: colours.series[2],
    revert: colours.series[1],
  };
  const datasets = toDatasets(json).map(({ style, kind, ...dataset }) => ({
    ...dataset,
    parsing: false,
    pointStyle: style,
    pointRadius: 4,
    pointHoverRadius: 6,
    pointBorderWidth: 2,
    showLine: kind === "default",
    borderWidth: 1,
    backgroundColor: colour[kind],
    borderColor: colour[kind],
  }));
  return new Chart(canvas, { type: "scatter", data: { datasets }, options: config });
}

export function summary(json) {
  const measured = json.trials.filter((trial) => trial.figure !== null);
  if (measured.length === 0) return "No trial is over yet.";
  const without = json.trials.length - measured.length;
  const told = toDatasets(json).map(({ label, data }) => `${data.length} of ${label}`);
  return `${json.label} of ${measured.length} trials in order: ${told.join(", ")}; ${without} without a figure.`;
}

export function table(json) {
  const rows = json.trials.map((trial) => [
    trial.position,
    trial.run === null ? "—" : `#${trial.run}`,
    KINDS.find(({ kind }) => kind === kindOf(trial)).label,
    trial.config,
    trial.figure === null ? "—" : plain(trial.figure),
  ]);
  return { head: ["Trial", "Run", "Kind", "Configuration", json.label], rows };
}
