// A search: its trials on the rate axis in their order, passed and failed, and the interval in which the limit lies.

import { faded, options, theme } from "./base.js";
import { plain } from "./format.js";

const RESULTS = [
  { result: "pass", label: "passed", style: "circle" },
  { result: "fail", label: "failed", style: "crossRot" },
  { result: "invalid", label: "invalid", style: "triangle" },
  { result: "", label: "running", style: "rect" },
];

export function toDatasets(json) {
  return RESULTS.map(({ result, label, style }) => ({
    label,
    style,
    data: json.trials
      .filter((trial) => trial.result === result)
      .map((trial) => ({ x: trial.rate_rps, y: trial.position, trial })),
  })).filter((dataset) => dataset.data.length > 0);
}

// Rates that are far apart stand on a logarithmic axis, whose ticks are too many to be labelled all.
function rateAxis(trials) {
  const rates = trials.map((trial) => trial.rate_rps);
  if (Math.max(...rates) < 3 * Math.min(...rates))
    return { type: "linear", ticks: { callback: (value) => plain(value), maxTicksLimit: 6 } };
  const isRound = (value) => /^[1235]0*$/.test(String(Math.round(value)));
  return { type: "logarithmic", ticks: { callback: (value) => (isRound(value) ? plain(value) : "") } };
}

export function draw(canvas, json) {
  const colours = theme();
  const config = options({
    unit: "count",
    zero: false,
    x: { ...rateAxis(json.trials), title: { display: true, text: "offered, requests/s", color: colours.text } },
  });
  config.scales.y.reverse = true;
  config.scales.y.grace = "12%";
  config.scales.y.ticks = {
    ...config.scales.y.ticks,
    precision: 0,
    callback: (value) => (Number.isInteger(value) && value > 0 ? `trial ${value}` : ""),
  };
  config.interaction = { mode: "nearest", intersect: true };
  config.plugins.legend.labels.usePointStyle = true;
  config.plugins.legend.labels.boxHeight = 6;
  config.plugins.tooltip.callbacks = {
    title: (items) => `${plain(items[0].raw.trial.rate_rps)} requests/s, run #${items[0].raw.trial.run}`,
    label: ({ raw }) => ` ${raw.trial.reason || "is running"}`,
  };
  if (json.low_rps !== null && json.high_rps !== null) {
    config.plugins.annotation = {
      annotations: {
        interval: {
          type: "box",
          xMin: json.low_rps,
          xMax: json.high_rps,
          backgroundColor: faded(colours.series[0], 0.15),
          borderColor: colours.series[0],
          borderWidth: 1,
          drawTime: "beforeDatasetsDraw",
        },
      },
    };
  }
  const colour = {
    passed: colours.series[2],
    failed: colours.warn,
    invalid: colours.faint,
    running: colours.series[0],
  };
  const datasets = toDatasets(json).map(({ style, ...dataset }) => ({
    ...dataset,
    parsing: false,
    pointStyle: style,
    pointRadius: 5,
    pointHoverRadius: 6,
    pointBorderWidth: 2,
    backgroundColor: colour[dataset.label],
    borderColor: colour[dataset.label],
  }));
  return new Chart(canvas, { type: "scatter", data: { datasets }, options: config });
}

export function summary(json) {
  if (json.trials.length === 0) return "No trial yet.";
  const count = (result) => json.trials.filter((trial) => trial.result === result).length;
  const parts = RESULTS.filter(({ result }) => count(result) > 0).map(
    ({ result, label }) => `${count(result)} ${label}`,
  );
  const between =
    json.low_rps !== null && json.high_rps !== null
      ? ` The limit lies between ${plain(json.low_rps)} and ${plain(json.high_rps)} requests/s (shaded).`
      : "";
  return `${json.trials.length} trials: ${parts.join(", ")}.${between}`;
}

export function table(json) {
  const rows = json.trials.map((trial) => [
    trial.position,
    plain(trial.rate_rps),
    trial.result || "running",
    trial.reason || "",
    `#${trial.run}`,
  ]);
  return { head: ["Trial", "Offered, requests/s", "Result", "Why", "Run"], rows };
}
