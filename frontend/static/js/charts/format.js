// Numbers as the pages write them (templatetags/units.py): about three significant digits, the unit beside them.

export const DASH = "—";

export function plain(value) {
  const size = Math.abs(value);
  if (size >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function milliseconds(value) {
  const size = Math.abs(value);
  if (size >= 10000) return `${(value / 1000).toFixed(1)} s`;
  if (size >= 1000) return `${(value / 1000).toFixed(2)} s`;
  if (size >= 100) return `${value.toFixed(0)} ms`;
  if (size >= 10) return `${value.toFixed(1)} ms`;
  if (size >= 1 || size === 0) return `${value.toFixed(2)} ms`;
  return `${(value * 1000).toFixed(0)} µs`;
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size.toFixed(unit === 0 || Math.abs(size) >= 10 ? 0 : 1)} ${units[unit]}`;
}

// Networks count in decimal units.
function bits(value) {
  const units = ["bit", "kbit", "Mbit", "Gbit", "Tbit"];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const text = unit === 0 || Math.abs(size) >= 100 ? size.toFixed(0) : String(Number(size.toPrecision(3)));
  return `${text} ${units[unit]}`;
}

export function format(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  switch (unit) {
    case "ms":
      return milliseconds(value);
    case "ratio":
      return `${(value * 100).toFixed(Math.abs(value) >= 0.1 ? 0 : 1)} %`;
    case "bytes":
      return bytes(value);
    case "bytes/s":
    case "bytes_per_s":
      return `${bytes(value)}/s`;
    case "bits/s":
      return `${bits(value)}/s`;
    case "requests/s":
    case "count":
    case "":
      return plain(value);
    default:
      return `${plain(value)} ${unit}`;
  }
}

// A time axis tick may sit between minutes, so whole seconds only.
export function clock(seconds) {
  const whole = Math.round(seconds);
  if (Math.abs(whole) < 120) return `${whole} s`;
  return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
}

export function day(time) {
  return new Date(time).toISOString().slice(0, 16).replace("T", " ");
}
