// Latency by percentile on a logarithmic axis of 1/(1 - p): it stretches the tail, where the interesting part is.

import { options, theme } from "./base.js";
import { format } from "./format.js";

const TICKS = [50, 90, 99, 99.9, 99.99, 99.999];
const LAST = 6;
const TICK_WIDTH = 58;

export function position(percentile) {
  return percentile >= 100 ? LAST : Math.min(LAST - 0.5, -Math.log10(1 - percentile / 100));
}

export function toDatasets(json) {
  return json.runs.map((run) => {
    const finite = run.points.filter((point) => point.percentile < 100);
    const edge = finite.length ? position(finite.at(-1).percentile) : 0;
    // The maximum has no place on such an axis: it stands one step after the last percentile.
    const data = run.points.map((point) => ({
      x: point.percentile < 100 ? position(point.percentile) : edge + 0.6,
      y: point.ms,
      percentile: point.percentile,
    }));
    return { label: run.basis ? `${run.name} (${run.basis})` : run.name, data };
  });
}

const named = (percentile) => (percentile >= 100 ? "max" : `p${percentile}`);

export function draw(canvas, json) {
  const colours = theme();
  const config = options({
    unit: "ms",
    zoom: "xy",
    x: {
      type: "linear",
      min: 0,
      ticks: {
        autoSkip: false,
        callback: (value) => `p${TICKS.find((tick) => Math.abs(position(tick) - value) < 1e-9) ?? ""}`,
      },
    },
  });
  config.scales.x.afterBuildTicks = (axis) => {
    const room = (axis.max * TICK_WIDTH) / axis.chart.width;
    const fitting = TICKS.map(position).filter((at) => at <= axis.max);
    axis.ticks = fitting.filter((at, i) => i === 0 || at - fitting[i - 1] >= room).map((value) => ({ value }));
  };
  config.interaction = { mode: "nearest", intersect: false, axis: "xy" };
  config.plugins.tooltip.callbacks = {
    title: (items) => items[0].dataset.label,
    label: ({ raw }) => ` ${named(raw.percentile)}: ${format(raw.y, "ms")}`,
  };
  const datasets = toDatasets(json).map((dataset, index) => {
    const colour = colours.series[index % colours.series.length];
    const radius = dataset.data.length > 40 ? 0 : 3;
    return { ...dataset, parsing: false, borderColor: colour, backgroundColor: colour, pointRadius: radius };
  });
  return new Chart(canvas, { type: "line", data: { datasets }, options: config });
}

export function summary(json) {
  if (json.runs.length === 0) return json.note || "No latency figures.";
  const bases = new Set(json.runs.map((run) => run.basis));
  const mixed = bases.size > 1 ? " Response time and service time must not be compared with each other." : "";
  const tails = json.runs.map((run) => {
    const point = run.points.findLast((one) => one.percentile < 100) ?? run.points.at(-1);
    return `${run.name} ${named(point.percentile)} ${format(point.ms, "ms")}`;
  });
  return `${tails.join("; ")}.${mixed}${json.note ? ` ${json.note}` : ""}`;
}

export function table(json) {
  const percentiles = [...new Set(json.runs.flatMap((run) => run.points.map((point) => point.percentile)))].sort(
    (a, b) => a - b,
  );
  const rows = percentiles.map((percentile) => [
    named(percentile),
    ...json.runs.map((run) => format(run.points.find((point) => point.percentile === percentile)?.ms, "ms")),
  ]);
  return { head: ["Percentile", ...json.runs.map((run) => run.name)], rows };
}
