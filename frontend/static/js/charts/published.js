// Published figures beside each other: what was reported, and the rate while the load lasted where it ended early.

import { faded, options, theme } from "./base.js";
import { format } from "./format.js";

export function toDatasets(json) {
  const found = [
    { label: "Reported", role: "valid", data: json.reports.map((r) => (r.validity === "invalid" ? null : r.value)) },
    {
      label: "Reported, invalid",
      role: "invalid",
      data: json.reports.map((r) => (r.validity === "invalid" ? r.value : null)),
    },
    { label: "While the load lasted", role: "active", data: json.reports.map((r) => r.active) },
  ];
  return found.filter((set) => set.data.some((value) => value !== null));
}

export function draw(canvas, json) {
  const colours = theme();
  const { unit } = json.metric;
  const config = options({ unit, zoom: "y", x: { type: "category", grid: { display: false } } });
  config.plugins.tooltip.callbacks = { label: ({ dataset, raw }) => ` ${dataset.label}: ${format(raw, unit)}` };
  config.skipNull = true;
  const looks = {
    valid: { backgroundColor: colours.series[0], borderColor: colours.series[0] },
    invalid: {
      backgroundColor: faded(colours.bad, 0.25),
      borderColor: colours.bad,
      borderWidth: 1,
      borderDash: [4, 4],
    },
    active: { backgroundColor: faded(colours.series[1], 0.6), borderColor: colours.series[1] },
  };
  const datasets = toDatasets(json).map(({ role, ...set }) => ({
    ...set,
    ...looks[role],
    skipNull: true,
    maxBarThickness: 56,
  }));
  return new Chart(canvas, {
    type: "bar",
    data: { labels: json.reports.map((r) => r.name), datasets },
    options: config,
  });
}

export function summary(json) {
  const { unit } = json.metric;
  const parts = json.reports.map((r) => {
    const active = r.active === null ? "" : `, ${format(r.active, unit)} while the load lasted`;
    return `${r.name} ${format(r.value, unit)} (${r.validity}${active})`;
  });
  return `${parts.join("; ")}.`;
}

export function table(json) {
  const { unit } = json.metric;
  return {
    head: ["Configuration", "Reported", "While the load lasted", "Validity"],
    rows: json.reports.map((r) => [r.name, format(r.value, unit), format(r.active, unit), r.validity]),
  };
}
