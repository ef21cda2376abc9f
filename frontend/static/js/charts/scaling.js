// Throughput against CPUs: the best point of each CPU count, the ideal line, the fitted law with its 95 % band.

import { faded, options, theme } from "./base.js";
import { plain } from "./format.js";

const LAWS = { usl: "Universal scalability law", amdahl: "Amdahl's law" };

export function toDatasets(json) {
  if (json.points.length === 0) return [];
  const each = json.base_rps / json.base_cpus;
  const found = [
    {
      label: "Measured",
      role: "points",
      data: json.points.map((p) => ({ x: p.cpus, y: p.rps, yMin: p.low ?? p.rps, yMax: p.high ?? p.rps, point: p })),
    },
    {
      label: "Ideal",
      role: "ideal",
      data: [
        { x: json.base_cpus, y: json.base_rps },
        { x: json.end_cpus, y: each * json.end_cpus },
      ],
    },
  ];
  if (json.law) {
    found.push({ label: LAWS[json.law], role: "law", data: json.curve.map((c) => ({ x: c.cpus, y: c.rps })) });
    const band = json.curve.filter((c) => c.low !== null);
    found.push({ label: "95 % band of the law", role: "upper", data: band.map((c) => ({ x: c.cpus, y: c.high })) });
    found.push({ label: "lower edge of the band", role: "lower", data: band.map((c) => ({ x: c.cpus, y: c.low })) });
  }
  return found;
}

export function axis(json, colours) {
  return {
    type: "linear",
    min: 0,
    max: json.end_cpus,
    title: { display: true, text: "CPUs", color: colours.text },
    ticks: { precision: 0, callback: (value) => plain(value), maxTicksLimit: 12 },
  };
}

// The library leaves a point at the end of the axis out of the range that it shows.
export function top(values) {
  return Math.max(...values.filter((value) => Number.isFinite(value)));
}

export function looks(colours) {
  const [blue, orange] = colours.series;
  const line = { type: "line", pointRadius: 0, pointHitRadius: 0 };
  return {
    points: {
      type: "scatterWithErrorBars",
      clip: 14,
      pointRadius: 5,
      backgroundColor: blue,
      borderColor: blue,
      errorBarColor: blue,
      errorBarWhiskerColor: blue,
      errorBarLineWidth: 2,
      errorBarWhiskerLineWidth: 2,
      errorBarWhiskerSize: 12,
    },
    ideal: { ...line, borderColor: colours.faint, backgroundColor: colours.faint, borderWidth: 1, borderDash: [4, 4] },
    law: { ...line, borderColor: orange, backgroundColor: orange, borderWidth: 2 },
    upper: { ...line, borderColor: "transparent", backgroundColor: faded(orange, 0.15), fill: "+1" },
    lower: { ...line, borderColor: "transparent", backgroundColor: faded(orange, 0.15) },
  };
}

export function draw(canvas, json) {
  const colours = theme();
  const config = options({ unit: "requests/s", zoom: "xy", x: axis(json, colours) });
  config.scales.y.suggestedMax = top(json.points.flatMap((p) => [p.rps, p.high]));
  config.interaction = { mode: "nearest", intersect: true };
  config.plugins.legend.labels.filter = (item) => item.text !== "lower edge of the band";
  config.plugins.tooltip.filter = (item) => item.raw.point !== undefined;
  config.plugins.tooltip.callbacks = {
    title: (items) => (items.length ? `${items[0].raw.point.cpus} CPUs: ${items[0].raw.point.name}` : ""),
    label: ({ raw }) => ` ${plain(raw.y)} requests/s, ideal ${plain(raw.point.ideal)}`,
    afterLabel: ({ raw }) =>
      [
        raw.point.load,
        raw.point.instances > 1 ? `${raw.point.instances} instances` : "",
        raw.point.super_linear ? "super-linear" : "",
      ].filter(Boolean),
  };
  if (json.peak) {
    config.plugins.annotation = {
      annotations: {
        peak: {
          type: "line",
          xMin: json.peak.cpus,
          xMax: json.peak.cpus,
          borderColor: colours.warn,
          borderWidth: 1,
          borderDash: [2, 3],
          label: {
            display: true,
            content: `peak at ${plain(Math.round(json.peak.cpus))} CPUs`,
            position: "end",
            backgroundColor: colours.surface,
            color: colours.warn,
            font: { size: 10, weight: "normal" },
            padding: 2,
          },
        },
      },
    };
  }
  const style = looks(colours);
  const datasets = toDatasets(json).map(({ role, ...dataset }) => {
    const several =
      role === "points"
        ? { pointStyle: dataset.data.map(({ point }) => (point.instances > 1 ? "rectRot" : "circle")) }
        : {};
    return { ...dataset, parsing: false, ...style[role], ...several };
  });
  return new Chart(canvas, { type: "scatter", data: { datasets }, options: config });
}

export function summary(json) {
  const last = json.points.at(-1);
  const parts = json.points.map((p) => `${p.cpus} CPU${p.cpus === 1 ? "" : "s"} ${plain(p.rps)}`);
  const peak = json.peak ? ` The peak lies at ${plain(Math.round(json.peak.cpus))} CPUs.` : "";
  return `Requests/s: ${parts.join(", ")}; the ideal for ${last.cpus} CPUs is ${plain(last.ideal)}.${peak}`;
}

export function table(json) {
  const rows = json.points.map((p) => [
    p.cpus,
    p.instances,
    p.name,
    p.load,
    plain(p.rps),
    p.low === null ? "—" : `${plain(p.low)} to ${plain(p.high)}`,
    plain(p.ideal),
  ]);
  return { head: ["CPUs", "Instances", "Variant", "Load", "Requests/s", "95 % interval", "Ideal"], rows };
}
