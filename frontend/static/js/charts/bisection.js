// A bisection: the candidates in their order, the change of those compared, and where the first bad one lies.

import { faded, options, theme } from "./base.js";

const RESULTS = [
  { result: "good", label: "not worse", style: "circle" },
  { result: "bad", label: "worse", style: "crossRot" },
  { result: "unclear", label: "unclear", style: "triangle" },
];
const LETTERS = 12;

const percent = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)} %`;
const short = (name) => (name.length > LETTERS ? `${name.slice(0, LETTERS - 1)}…` : name);
const interval = (step) => (step.low_pct === null ? "—" : `${percent(step.low_pct)} to ${percent(step.high_pct)}`);

export function toDatasets(json) {
  const known = json.steps.filter((step) => step.estimate_pct !== null);
  return RESULTS.map(({ result, label, style }) => ({
    label,
    style,
    data: known
      .filter((step) => step.result === result)
      .map((step) => ({
        x: step.index,
        y: step.estimate_pct,
        yMin: step.low_pct ?? step.estimate_pct,
        yMax: step.high_pct ?? step.estimate_pct,
        step,
      })),
  })).filter((dataset) => dataset.data.length > 0);
}

function marks(json, colours) {
  const line = (y, dash) => ({
    type: "line",
    yMin: y,
    yMax: y,
    borderColor: colours.faint,
    borderWidth: 1,
    borderDash: dash,
    drawTime: "beforeDatasetsDraw",
  });
  const found = { nothing: line(0, []), more: line(json.margin_pct, [4, 4]), less: line(-json.margin_pct, [4, 4]) };
  if (json.high !== null) {
    found.first = {
      type: "box",
      xMin: json.low + 0.5,
      xMax: json.high + 0.5,
      backgroundColor: faded(colours.bad, 0.12),
      borderColor: colours.bad,
      borderWidth: 1,
      borderDash: json.high - json.low > 1 ? [4, 4] : [],
      drawTime: "beforeDatasetsDraw",
    };
  }
  return found;
}

export function draw(canvas, json) {
  const colours = theme();
  const last = json.candidates.length - 1;
  const x = {
    type: "linear",
    min: -0.6,
    max: last + 0.6,
    grid: { display: false },
    ticks: { stepSize: 1, callback: (value) => short(json.candidates[value] ?? "") },
  };
  const config = options({ unit: "count", zero: false, grace: "10%", zoom: "xy", x });
  config.scales.x.afterBuildTicks = (axis) => {
    const all = json.candidates.map((_, value) => ({ value }));
    axis.ticks = all.filter(({ value }) => value >= axis.min && value <= axis.max);
  };
  config.scales.y.ticks.callback = (value) => percent(value);
  // The library looks at the points alone, not at the ends of their intervals.
  const ends = json.steps.flatMap((step) => [
    step.low_pct ?? step.estimate_pct ?? 0,
    step.high_pct ?? step.estimate_pct ?? 0,
  ]);
  config.scales.y.suggestedMin = Math.min(-1.5 * json.margin_pct, ...ends);
  config.scales.y.suggestedMax = Math.max(1.5 * json.margin_pct, ...ends);
  config.interaction = { mode: "nearest", intersect: true };
  config.plugins.legend.labels.usePointStyle = true;
  config.plugins.legend.labels.boxHeight = 6;
  config.plugins.tooltip.callbacks = {
    title: (items) => `${json.candidates[items[0].raw.step.index]}, step ${items[0].raw.step.position}`,
    label: ({ raw }) => ` ${percent(raw.step.estimate_pct)}, 95 % interval ${interval(raw.step)}`,
  };
  config.plugins.annotation = { annotations: marks(json, colours) };
  const colour = { "not worse": colours.series[2], worse: colours.warn, unclear: colours.faint };
  const datasets = toDatasets(json).map(({ style, ...dataset }) => {
    const own = colour[dataset.label];
    return {
      ...dataset,
      parsing: false,
      pointStyle: style,
      pointRadius: 5,
      pointHoverRadius: 6,
      pointBorderWidth: 2,
      backgroundColor: own,
      borderColor: own,
      errorBarColor: own,
      errorBarWhiskerColor: own,
      errorBarLineWidth: 2,
      errorBarWhiskerLineWidth: 2,
      errorBarWhiskerSize: 10,
    };
  });
  return new Chart(canvas, { type: "scatterWithErrorBars", data: { datasets }, options: config });
}

export function summary(json) {
  const over = json.steps.filter((step) => step.result);
  if (over.length === 0) return "No step is over yet.";
  const told = over.map(
    (step) => `${json.candidates[step.index]} ${step.estimate_pct === null ? "unclear" : percent(step.estimate_pct)}`,
  );
  const between =
    json.high === null
      ? ""
      : json.high - json.low > 1
        ? ` The first bad one is after ${json.candidates[json.low]} and not after ${json.candidates[json.high]} (shaded).`
        : ` The first bad one is ${json.candidates[json.high]} (shaded).`;
  const margin = `margin ±${json.margin_pct.toFixed(1)} % (dashed)`;
  return `${json.label} against ${json.candidates[0]}, in the order of the steps: ${told.join(", ")}; ${margin}.${between}`;
}

export function table(json) {
  const steps = new Map(json.steps.map((step) => [step.index, step]));
  const words = Object.fromEntries(RESULTS.map(({ result, label }) => [result, label]));
  const rows = json.candidates.map((name, index) => {
    const step = steps.get(index);
    if (index === 0) return [name, "", "the good one", "", ""];
    if (!step) return [name, "", "not compared", "", ""];
    return [
      name,
      step.position,
      words[step.result] ?? "being compared",
      step.estimate_pct === null ? "—" : percent(step.estimate_pct),
      interval(step),
    ];
  });
  return { head: ["Candidate", "Step", "Result", json.label, "95 % interval"], rows };
}
