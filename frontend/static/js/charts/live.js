// Readings of the hosts over the time of a run, or of several runs over each other; t = 0 is the start of measuring.

import { faded, options, theme } from "./base.js";
import { clock, format } from "./format.js";

// The server has more points of a part than of the whole.
export const ranged = true;

const MAX_POINTS = 2000;

// What the server says of a line's channel: its title, and how a timeline draws it.
export function kindOf(line, json) {
  return json.channels?.find((kind) => new RegExp(kind.pattern).test(line.channel));
}

// sut, driver, driver-2 and so on, in words.
function part(role) {
  return role === "sut" ? "SUT" : role.replace("driver", "Driver").replace("-", " ");
}

export function label(line, json) {
  if (line.name) return line.name;
  const kind = kindOf(line, json);
  if (kind) {
    // The first group of the pattern is the whole name.
    const parts = line.channel.match(new RegExp(kind.pattern)).slice(1);
    return kind.title.replace("{host}", part(line.role)).replaceAll(/\{([0-9])\}/g, (_, number) => parts[number]);
  }
  const words = line.channel.replace(/_(ratio|bytes|bytes_per_s|per_s)$/, "").replaceAll(/[._]/g, " ");
  return `${part(line.role)} ${words}`;
}

export function toDatasets(json) {
  return json.lines.map((line) => ({
    label: label(line, json),
    data: line.at_s.map((x, index) => ({ x, y: line.values[index] })),
    driver: line.role.startsWith("driver"), // no member of a system may be called so
    unit: line.unit,
  }));
}

// Of one run: even colours for the SUT, odd and dashed for the driver hosts. Of several: one colour per run, fixed.
function styled(json, colours) {
  const count = [0, 0];
  const ofRun = new Map();
  return toDatasets(json).map((dataset, index) => {
    const line = json.lines[index];
    let place;
    if (line.run === undefined) place = 2 * count[Number(dataset.driver)]++ + Number(dataset.driver);
    else place = ofRun.get(line.run) ?? ofRun.set(line.run, ofRun.size).get(line.run);
    const colour = colours.series[place % colours.series.length];
    return {
      ...dataset,
      borderColor: colour,
      backgroundColor: colour,
      borderDash: dataset.driver ? [5, 3] : [],
      parsing: false,
    };
  });
}

function measuredWindow(json, colours) {
  if (!json.duration_s || json.t0_unix_s === null) return {};
  return {
    measured: {
      type: "box",
      xMin: 0,
      xMax: json.duration_s,
      backgroundColor: faded(colours.series[0], 0.05),
      borderColor: faded(colours.series[0], 0.3),
      borderWidth: 1,
      drawTime: "beforeDatasetsDraw",
      label: {
        display: true,
        content: "measured",
        position: { x: "start", y: "start" },
        color: colours.faint,
        font: { size: 10, weight: "normal" },
        padding: 4,
      },
    },
  };
}

export function draw(canvas, json) {
  const colours = theme();
  const unit = json.lines[0]?.unit ?? "";
  const whole = unit === "ratio" && json.lines.every((line) => line.values.every((value) => value <= 1));
  const config = options({
    unit,
    grace: whole ? 0 : "6%",
    x: { type: "linear", ticks: { precision: 0, callback: (value) => clock(value) } },
  });
  if (whole) config.scales.y.suggestedMax = 1;
  config.plugins.tooltip.callbacks.title = (items) => clock(items[0].parsed.x);
  config.plugins.annotation = { annotations: measuredWindow(json, colours) };
  return new Chart(canvas, { type: "line", data: { datasets: styled(json, colours) }, options: config });
}

export function refresh(chart, json) {
  const fresh = styled(json, theme());
  chart.data.datasets = fresh;
  chart.options.plugins.annotation.annotations = measuredWindow(json, theme());
  chart.update("none");
}

// Halves a line that has become too long: of each two points the first stays, except that a peak is never dropped.
function thin(line) {
  const at = [];
  const values = [];
  for (let i = 0; i < line.values.length; i += 4) {
    const stretch = line.values.slice(i, i + 4);
    const low = i + stretch.indexOf(Math.min(...stretch));
    const high = i + stretch.indexOf(Math.max(...stretch));
    for (const kept of [...new Set([low, high])].sort((a, b) => a - b)) {
      at.push(line.at_s[kept]);
      values.push(line.values[kept]);
    }
  }
  line.at_s = at;
  line.values = values;
}

// Takes one run event in; true when there is something new to draw.
export function append(json, event) {
  if (!json.live || event.seq <= json.seq) return false;
  json.seq = event.seq;
  if (event.kind === "load_started" && event.measured) {
    const shift = json.zero_unix_s === null ? 0 : event.at_unix_s - json.zero_unix_s;
    for (const line of json.lines) line.at_s = line.at_s.map((at) => at - shift);
    json.t0_unix_s = json.zero_unix_s = event.at_unix_s;
    json.duration_s = event.duration_s;
    return true;
  }
  if (event.kind !== "samples") return false;
  json.zero_unix_s ??= event.at_unix_s;
  const wanted = new RegExp(json.pattern);
  let changed = false;
  for (const [channel, [unit, value]] of Object.entries(event.values)) {
    if (!wanted.test(channel)) continue;
    let line = json.lines.find((one) => one.role === event.role && one.channel === channel);
    if (!line) {
      line = { role: event.role, channel, unit, at_s: [], values: [] };
      json.lines.push(line);
    }
    line.at_s.push(event.at_unix_s - json.zero_unix_s);
    line.values.push(value);
    if (line.values.length > MAX_POINTS) thin(line);
    changed = true;
  }
  return changed;
}

export function summary(json) {
  if (json.lines.length === 0) return json.live ? "No readings yet." : "No readings of this kind.";
  const means = json.lines.slice(0, 4).map((line) => {
    const inside = line.values.filter(
      (_, i) => line.at_s[i] >= 0 && (!json.duration_s || line.at_s[i] <= json.duration_s),
    );
    const values = inside.length ? inside : line.values;
    return `${label(line, json)} ${format(values.reduce((a, b) => a + b, 0) / values.length, line.unit)}`;
  });
  const more =
    json.lines.length > 4 || json.left_out
      ? `, and ${json.lines.length - means.length + (json.left_out ?? 0)} more`
      : "";
  const thinned = json.thinned
    ? " Long lines show the lowest and the highest reading of each stretch; zoom in to see every one."
    : "";
  return `Means: ${means.join(", ")}${more}.${thinned}`;
}

export function table(json) {
  const rows = json.lines.map((line) => {
    const values = [...line.values].sort((a, b) => a - b);
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return [
      label(line, json),
      values.length,
      ...[mean, values[0], values.at(-1), line.values.at(-1)].map((v) => format(v, line.unit)),
    ];
  });
  return { head: ["Channel", "Readings", "Mean", "Lowest", "Highest", "Last"], rows };
}
