// Parallel coordinates: an axis per factor of a sweep and the metric at the end, a line per variant.

import { faded, options, theme } from "./base.js";
import { format } from "./format.js";

const MOST_LEVELS = 8;

// Where a level stands on its axis: levels keep equal distances, so that 1, 2, 4, 8 CPUs stay apart.
function place(levels, value) {
  return levels.length < 2 ? 0.5 : levels.indexOf(value) / (levels.length - 1);
}

function range(json) {
  const figures = json.variants.map((variant) => variant.figure).filter((figure) => figure !== null);
  return { low: Math.min(...figures), high: Math.max(...figures) };
}

export function goodness(json, figure) {
  const { low, high } = range(json);
  const share = high > low ? (figure - low) / (high - low) : 0.5;
  return json.metric.higher_is_better ? share : 1 - share;
}

export function toDatasets(json) {
  const { low, high } = range(json);
  const last = json.factors.length;
  return json.variants
    .filter((variant) => variant.figure !== null)
    .map((variant) => ({
      label: variant.name,
      variant,
      data: [
        ...variant.values.map((value, x) => ({ x, y: place(json.factors[x].levels, value) })),
        { x: last, y: high > low ? (variant.figure - low) / (high - low) : 0.5 },
      ],
    }));
}

function axisMarks(json, colours) {
  const { low, high } = range(json);
  const { unit } = json.metric;
  const axes = [
    ...json.factors.map((factor) =>
      factor.levels.map((level) => ({ y: place(factor.levels, level), text: level === "" ? "—" : String(level) })),
    ),
    low < high
      ? [
          { y: 0, text: format(low, unit) },
          { y: 1, text: format(high, unit) },
        ]
      : [{ y: 0.5, text: format(low, unit) }],
  ];
  const found = {};
  axes.forEach((marks, x) => {
    found[`axis${x}`] = {
      type: "line",
      xMin: x,
      xMax: x,
      yMin: 0,
      yMax: 1,
      borderColor: colours.faint,
      borderWidth: 1,
      drawTime: "beforeDatasetsDraw",
    };
    const shown = marks.length > MOST_LEVELS ? [marks[0], marks.at(-1)] : marks;
    shown.forEach(({ y, text }, index) => {
      found[`level${x}-${index}`] = {
        type: "label",
        xValue: x,
        yValue: y,
        content: text,
        backgroundColor: faded(colours.surface, 0.85),
        color: colours.text,
        font: { size: 11 },
        padding: 3,
        position: { x: x === axes.length - 1 ? "end" : "start", y: "center" },
      };
    });
  });
  return found;
}

export function draw(canvas, json) {
  const colours = theme();
  const names = [...json.factors.map((factor) => factor.name), json.metric.label];
  const config = options({
    unit: "",
    legend: false,
    zoom: "y",
    grace: 0,
    x: {
      type: "linear",
      min: -0.1,
      max: names.length - 0.9,
      grid: { display: false },
      ticks: { stepSize: 1, autoSkip: false, callback: (value) => names[value] ?? "" },
    },
  });
  config.scales.x.afterBuildTicks = (axis) => (axis.ticks = names.map((_, value) => ({ value })));
  config.scales.y = { ...config.scales.y, min: -0.06, max: 1.06, grid: { display: false }, ticks: { display: false } };
  config.interaction = { mode: "nearest", intersect: false, axis: "xy" };
  config.plugins.tooltip.callbacks = {
    title: (items) => items[0].dataset.label,
    label: ({ dataset }) => ` ${json.metric.label} ${format(dataset.variant.figure, json.metric.unit)}`,
    afterLabel: ({ dataset }) =>
      json.factors.map((factor, index) => ` ${factor.name} ${dataset.variant.values[index]}`),
  };
  config.plugins.annotation = { annotations: axisMarks(json, colours) };
  const datasets = toDatasets(json).map((dataset) => {
    const good = goodness(json, dataset.variant.figure);
    const colour = good === 1 ? colours.series[1] : faded(colours.series[0], 0.2 + 0.8 * good);
    return {
      ...dataset,
      parsing: false,
      borderColor: colour,
      backgroundColor: colour,
      borderWidth: good === 1 ? 3 : 1.5,
      borderDash: dataset.variant.is_baseline ? [6, 4] : [],
      pointRadius: 2.5,
    };
  });
  return new Chart(canvas, { type: "line", data: { datasets }, options: config });
}

function sorted(json) {
  const measured = json.variants.filter((variant) => variant.figure !== null);
  return measured.sort((a, b) => goodness(json, b.figure) - goodness(json, a.figure));
}

export function summary(json) {
  const order = sorted(json);
  const told = (variant) => {
    const levels = json.factors.map((factor, index) => `${factor.name} ${variant.values[index] || "—"}`);
    return `${variant.name} ${format(variant.figure, json.metric.unit)} (${levels.join(", ")})`;
  };
  return `${order.length} variants over ${json.factors.length} factors. Best (thick line): ${told(order[0])}. Last: ${told(order.at(-1))}.`;
}

export function table(json) {
  const rows = sorted(json).map((variant) => [
    variant.name + (variant.is_baseline ? " (baseline)" : ""),
    ...variant.values.map((value) => (value === "" ? "—" : value)),
    format(variant.figure, json.metric.unit),
  ]);
  return { head: ["Variant", ...json.factors.map((factor) => factor.name), json.metric.label], rows };
}
