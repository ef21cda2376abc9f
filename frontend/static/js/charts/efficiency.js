// Efficiency against CPUs: throughput per CPU relative to the fewest CPUs; 1 is ideal.

import { options, theme } from "./base.js";
import { format } from "./format.js";
import { axis, looks, top } from "./scaling.js";

export function toDatasets(json) {
  if (json.points.length === 0) return [];
  const each = json.base_rps / json.base_cpus;
  const found = [
    {
      label: "Measured",
      role: "points",
      data: json.points.map((p) => ({
        x: p.cpus,
        y: p.efficiency,
        yMin: p.efficiency_low ?? p.efficiency,
        yMax: p.efficiency_high ?? p.efficiency,
        point: p,
      })),
    },
    {
      label: "Ideal",
      role: "ideal",
      data: [
        { x: json.base_cpus, y: 1 },
        { x: json.end_cpus, y: 1 },
      ],
    },
  ];
  if (json.law)
    found.push({
      label: "Fitted law",
      role: "law",
      data: json.curve.map((c) => ({ x: c.cpus, y: c.rps / (c.cpus * each) })),
    });
  return found;
}

export function draw(canvas, json) {
  const colours = theme();
  const config = options({ unit: "ratio", zoom: "xy", grace: 0, x: axis(json, colours) });
  config.scales.y.ticks.stepSize = 0.25;
  config.scales.y.suggestedMax = top([1, ...json.points.flatMap((p) => [p.efficiency, p.efficiency_high])]);
  config.interaction = { mode: "nearest", intersect: true };
  config.plugins.tooltip.filter = (item) => item.raw.point !== undefined;
  config.plugins.tooltip.callbacks = {
    title: (items) => (items.length ? `${items[0].raw.point.cpus} CPUs: ${items[0].raw.point.name}` : ""),
    label: ({ raw: { y, point } }) => {
      const interval = [point.efficiency_low, point.efficiency_high].map((bound) => format(bound, "ratio")).join(", ");
      return ` ${format(y, "ratio")}${point.efficiency_low === null ? "" : ` [${interval}]`}`;
    },
  };
  const style = looks(colours);
  const datasets = toDatasets(json).map(({ role, ...dataset }) => ({ ...dataset, parsing: false, ...style[role] }));
  return new Chart(canvas, { type: "scatter", data: { datasets }, options: config });
}

export function summary(json) {
  const above = json.points.filter((p) => p.super_linear).map((p) => p.cpus);
  const parts = json.points.map((p) => `${p.cpus} CPU${p.cpus === 1 ? "" : "s"} ${format(p.efficiency, "ratio")}`);
  return `Efficiency: ${parts.join(", ")}.${above.length ? ` Super-linear at ${above.join(", ")} CPUs.` : ""}`;
}

export function table(json) {
  const rows = json.points.map((p) => [
    p.cpus,
    p.instances,
    format(p.efficiency, "ratio"),
    p.efficiency_low === null ? "—" : `${format(p.efficiency_low, "ratio")} to ${format(p.efficiency_high, "ratio")}`,
    p.super_linear ? "super-linear" : "",
  ]);
  return { head: ["CPUs", "Instances", "Efficiency", "95 % interval", ""], rows };
}
