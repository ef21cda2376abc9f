// Variants beside each other: the mean with its 95 % interval, and every repetition as a dot.

import { faded, options, theme } from "./base.js";
import { format } from "./format.js";

const SPREAD = 0.22;

// Long names take several lines, so that they do not run into each other.
function wrapped(name, letters) {
  const lines = [];
  for (const word of name.split(" ")) {
    if (lines.length && lines.at(-1).length + word.length < letters) lines[lines.length - 1] += ` ${word}`;
    else lines.push(word);
  }
  return lines;
}

// The dots of one variant side by side, so that equal values stay visible.
function offset(index, count) {
  return count < 2 ? 0 : (index / (count - 1) - 0.5) * SPREAD;
}

export function toDatasets(json) {
  const measured = json.variants.filter((variant) => variant.repetitions.length > 0);
  if (measured.length === 0) return [];
  return [
    {
      label: "Mean with 95 % interval",
      data: json.variants
        .map((v, x) => ({ x, y: v.mean, yMin: v.low ?? v.mean, yMax: v.high ?? v.mean, variant: v }))
        .filter((point) => point.y !== null),
    },
    {
      label: "Repetitions",
      data: json.variants.flatMap((v, x) =>
        v.repetitions.map((r, i) => ({
          x: x + 0.2 + offset(i, v.repetitions.length),
          y: r.value,
          yMin: r.value,
          yMax: r.value,
          number: r.number,
          variant: v,
        })),
      ),
    },
  ];
}

// One place per variant, with its name below it.
function places(names) {
  return {
    type: "linear",
    min: -0.6,
    max: names.length - 0.4,
    grid: { display: false },
    ticks: {
      stepSize: 1,
      autoSkip: false,
      callback(value) {
        return wrapped(names[value] ?? "", this.chart.width / names.length / 7.5);
      },
    },
  };
}

function levelOf(baseline, colours) {
  return {
    type: "line",
    yMin: baseline.mean,
    yMax: baseline.mean,
    borderColor: colours.faint,
    borderWidth: 1,
    borderDash: [4, 4],
    drawTime: "beforeDatasetsDraw",
  };
}

function intervals(means, colour) {
  return {
    ...means,
    errorBarColor: colour,
    errorBarWhiskerColor: colour,
    errorBarLineWidth: 2,
    errorBarWhiskerLineWidth: 2,
    errorBarWhiskerSize: 14,
    pointRadius: 5,
    pointHoverRadius: 6,
    pointStyle: "rectRot",
    backgroundColor: colour,
    borderColor: colour,
  };
}

function repetitions(dots, colour) {
  return {
    ...dots,
    errorBarLineWidth: 0,
    errorBarWhiskerLineWidth: 0,
    errorBarWhiskerSize: 0,
    errorBarColor: "transparent",
    errorBarWhiskerColor: "transparent",
    pointRadius: 3,
    pointHoverRadius: 5,
    backgroundColor: faded(colour, 0.75),
    borderColor: colour,
  };
}

export function draw(canvas, json) {
  const colours = theme();
  const names = json.variants.map((variant) => variant.name);
  const { unit } = json.metric;
  const config = options({ unit, zero: false, zoom: "y", x: places(names) });
  config.scales.x.afterBuildTicks = (axis) => (axis.ticks = names.map((_, value) => ({ value })));
  config.interaction = { mode: "nearest", intersect: true };
  config.plugins.legend.labels.usePointStyle = true;
  config.plugins.legend.labels.boxHeight = 6;
  config.plugins.tooltip.callbacks = {
    title: (items) => items[0].raw.variant.name,
    label: ({ raw }) =>
      raw.number
        ? ` #${raw.number}: ${format(raw.y, unit)}`
        : ` mean ${format(raw.y, unit)}${raw.variant.low === null ? "" : ` [${format(raw.variant.low, unit)}, ${format(raw.variant.high, unit)}]`}`,
  };
  const [means, dots] = toDatasets(json);
  const baseline = json.variants.find((variant) => variant.is_baseline && variant.mean !== null);
  if (baseline) {
    config.plugins.annotation = { annotations: { baseline: levelOf(baseline, colours) } };
  }
  return new Chart(canvas, {
    type: "scatterWithErrorBars",
    data: { datasets: [intervals(means, colours.series[0]), repetitions(dots, colours.series[1])] },
    options: config,
  });
}

export function summary(json) {
  const { unit } = json.metric;
  const parts = json.variants
    .filter((v) => v.mean !== null)
    .map(
      (v) =>
        `${v.name} ${format(v.mean, unit)}${v.low === null ? "" : ` [${format(v.low, unit)}, ${format(v.high, unit)}]`}, n=${v.repetitions.length}`,
    );
  return parts.length ? `${parts.join("; ")}.` : "No valid repetition has finished yet.";
}

export function table(json) {
  const { unit } = json.metric;
  const rows = json.variants.map((v) => [
    v.name + (v.is_baseline ? " (baseline)" : ""),
    v.repetitions.length,
    format(v.mean, unit),
    v.low === null ? "—" : `${format(v.low, unit)} to ${format(v.high, unit)}`,
    v.repetitions.map((r) => format(r.value, unit)).join(", "),
  ]);
  return { head: ["Variant", "n", "Mean", "95 % interval", "Repetitions"], rows };
}
