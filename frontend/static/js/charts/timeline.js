// A run from its first phase to its last: load, latency and CPUs in panels over one time axis, with phases and notes.

import { faded, options, theme } from "./base.js";
import { clock, format } from "./format.js";
import { shortened } from "./history.js";
import { append as appendReadings, kindOf, label, ranged } from "./live.js";

export { ranged };

const ABOVE = 16; // pixels over the panels, for the names of the phases

// The CPUs that a role was given say more than all of its machine, when both were read.
function shownLines(json) {
  const there = new Set(json.lines.map((line) => `${line.role} ${line.channel}`));
  return json.lines.filter(
    (line) => line.values.length > 0 && !there.has(`${line.role} ${kindOf(line, json)?.hidden_by}`),
  );
}

export function toDatasets(json) {
  return shownLines(json).map((line) => ({
    label: label(line, json),
    panel: kindOf(line, json).panel,
    driver: line.role.startsWith("driver"), // no member of a system may be called so
    points: kindOf(line, json).events !== "",
    unit: line.unit,
    data: line.at_s.map((x, index) => ({ x, y: line.values[index] })),
  }));
}

function styled(json, colours) {
  const ofHosts = new Set(json.panels.filter((panel) => panel.of_hosts).map((panel) => panel.id));
  return toDatasets(json).map(({ panel, driver, points, ...dataset }, index) => {
    const colour = colours.series[index % colours.series.length];
    const marks = points ? { showLine: false, pointRadius: 3, pointStyle: "triangle" } : {};
    return {
      ...dataset,
      yAxisID: panel,
      borderColor: colour,
      backgroundColor: colour,
      borderDash: driver && ofHosts.has(panel) ? [5, 3] : [],
      parsing: false,
      ...marks,
    };
  });
}

// From where to where the axis goes when nothing is zoomed: all phases and all readings.
export function extent(json) {
  const ends = json.phases.flatMap((phase) => [phase.from_s, phase.to_s ?? phase.from_s]);
  const readings = json.lines.flatMap((line) => [line.at_s[0], line.at_s.at(-1)]).filter((at) => at !== undefined);
  const all = [...ends, ...readings];
  return all.length ? { min: Math.min(...all), max: Math.max(...all) } : { min: 0, max: 1 };
}

// What stands on the axis over all panels: the phases as bands, where measuring began, the notes.
const background = {
  id: "background",
  beforeDatasetsDraw({ ctx, chartArea, scales: { x } }, _, { json, colours }) {
    const { top, bottom, left, right } = chartArea;
    const end = extent(json).max;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top - ABOVE, right - left, bottom - top + ABOVE);
    ctx.clip();
    ctx.textAlign = "center";
    json.phases.forEach((phase, index) => {
      const from = Math.max(left, x.getPixelForValue(phase.from_s));
      const to = Math.min(right, x.getPixelForValue(phase.to_s ?? end));
      if (to <= from) return;
      ctx.fillStyle =
        phase.state === "failed" ? faded(colours.bad, 0.12) : faded(colours.series[0], index % 2 ? 0.1 : 0.03);
      ctx.fillRect(from, top, to - from, bottom - top);
      ctx.fillStyle = colours.text;
      if (ctx.measureText(phase.label).width + 6 < to - from) ctx.fillText(phase.label, (from + to) / 2, top - 5);
    });
    if (json.t0_unix_s !== null) upright(ctx, x.getPixelForValue(0), chartArea, colours.good, []);
    json.notes.forEach((note, index) => {
      const at = x.getPixelForValue(note.at_s);
      upright(ctx, at, chartArea, colours.text, [2, 3]);
      ctx.textAlign = at > (left + right) / 2 ? "right" : "left";
      ctx.fillStyle = colours.strong;
      ctx.fillText(shortened(note.text), at + (ctx.textAlign === "right" ? -5 : 5), top + 12 + (index % 3) * 14);
    });
    ctx.restore();
  },
};

function upright(ctx, x, { top, bottom }, colour, dash) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, bottom);
  ctx.stroke();
  ctx.setLineDash([]);
}

// Of every line the point that is nearest in time: one look across all panels.
function nearestOfEach(chart, event, _, useFinalPosition) {
  const x = chart.scales.x.getValueForPixel(event.x);
  const found = [];
  for (const meta of chart.getSortedVisibleDatasetMetas()) {
    const points = chart.data.datasets[meta.index].data;
    let best = -1;
    for (let i = 0; i < points.length; i += 1)
      if (best < 0 || Math.abs(points[i].x - x) < Math.abs(points[best].x - x)) best = i;
    const element = meta.data[best];
    if (element && !element.skip) found.push({ element, datasetIndex: meta.index, index: best, useFinalPosition });
  }
  return found;
}

const cursor = {
  id: "cursor",
  afterDatasetsDraw(chart) {
    const [active] = chart.tooltip?.getActiveElements() ?? [];
    if (active)
      upright(chart.ctx, active.element.x, chart.chartArea, chart.options.plugins.tooltip.backgroundColor, []);
  },
};

export function draw(canvas, json) {
  const colours = theme();
  const datasets = styled(json, colours);
  const config = options({
    unit: "",
    x: { type: "linear", ...extent(json), ticks: { precision: 0, callback: (value) => clock(value) } },
  });
  const { y, ...scales } = config.scales;
  const shown = json.panels.filter((panel) => datasets.some((dataset) => dataset.yAxisID === panel.id));
  // The library puts the first of stacked axes at the bottom.
  shown.reverse().forEach((panel) => {
    scales[panel.id] = {
      ...y,
      axis: "y",
      type: "linear",
      position: "left",
      stack: "panels",
      stackWeight: panel.weight,
      offset: shown.length > 1,
      beginAtZero: true,
      ...(panel.unit === "ratio" ? { min: 0, max: 1, grace: 0 } : {}),
      title: { display: true, text: panel.title, color: colours.text, font: y.ticks.font },
      ticks: { ...y.ticks, maxTicksLimit: 5, callback: (value) => (value === 0 ? "0" : format(value, panel.unit)) },
    };
  });
  config.scales = scales;
  config.layout = { padding: { top: ABOVE } };
  Chart.Interaction.modes.nearestOfEach = nearestOfEach;
  config.interaction = { mode: "nearestOfEach", intersect: false };
  config.plugins.tooltip.callbacks = {
    title: (items) => (items.length ? clock(items[0].parsed.x) : ""),
    label: (item) => ` ${item.dataset.label}: ${format(item.parsed.y, item.dataset.unit)}`,
  };
  config.plugins.background = { json, colours };
  return new Chart(canvas, { type: "line", data: { datasets }, options: config, plugins: [background, cursor] });
}

export function append(json, event) {
  const changed = appendReadings(json, event);
  if (event.kind === "load_started" && event.measured && changed) json.phases = [];
  return changed;
}

export function summary(json) {
  if (json.lines.length === 0) return json.live ? "No readings yet." : "The monitors left no readings of this run.";
  const inside = (line) =>
    line.values.filter((_, i) => line.at_s[i] >= 0 && (!json.duration_s || line.at_s[i] <= json.duration_s));
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const parts = shownLines(json).map((line) => {
    const { events } = kindOf(line, json);
    if (events) return `${line.values.length} ${events}, the longest ${format(Math.max(...line.values), "ms")}`;
    const values = inside(line);
    return `${label(line, json)} ${format(mean(values.length ? values : line.values), line.unit)}`;
  });
  const phases = json.phases
    .filter((phase) => phase.to_s !== null && phase.to_s - phase.from_s >= 1)
    .map((phase) => `${phase.label} ${clock(phase.to_s - phase.from_s)}`);
  const notes = json.notes.map((note) => `${clock(note.at_s)} ${note.text}`);
  return (
    `While measured${json.duration_s ? ` (${clock(json.duration_s)})` : ""}: ${parts.join(", ")}.` +
    (phases.length ? ` Phases: ${phases.join(", ")}.` : "") +
    (notes.length ? ` Notes: ${notes.join("; ")}.` : "")
  );
}

export function table(json) {
  const readings = shownLines(json).map((line) => {
    const sorted = [...line.values].sort((a, b) => a - b);
    const mean = line.values.reduce((a, b) => a + b, 0) / line.values.length;
    return [
      label(line, json),
      clock(line.at_s[0]),
      clock(line.at_s.at(-1)),
      ...[mean, sorted[0], sorted.at(-1)].map((value) => format(value, line.unit)),
    ];
  });
  const phases = json.phases.map((phase) => [
    `Phase ${phase.label}`,
    clock(phase.from_s),
    phase.to_s === null ? "—" : clock(phase.to_s),
    phase.state,
    "",
    "",
  ]);
  const notes = json.notes.map((note) => [`Note: ${note.text}`, clock(note.at_s), "", note.author, "", ""]);
  return { head: ["What", "From", "To", "Mean", "Lowest", "Highest"], rows: [...readings, ...phases, ...notes] };
}
