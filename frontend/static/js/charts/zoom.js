// What part of a chart is shown: drag to zoom, shift and drag to move, ctrl and wheel; kept in the address of the page.

const DIGITS = 8;
const BETWEEN = "~";

const name = (key) => `zoom-${key}`;

function part(text) {
  const [low, high] = text.map(Number);
  return text.length === 2 && Number.isFinite(low) && Number.isFinite(high) && low < high
    ? { min: low, max: high }
    : null;
}

// { x: { min, max }, y: { min, max } or null } from "0~60" or "0~60~1000~2000"; null when it is none.
export function parse(text) {
  const parts = (text ?? "").split(BETWEEN);
  const x = part(parts.slice(0, 2));
  return x && { x, y: part(parts.slice(2, 4)) };
}

export function write({ x, y }) {
  const numbers = [x.min, x.max, ...(y ? [y.min, y.max] : [])];
  return numbers.map((number) => String(Number(number.toPrecision(DIGITS)))).join(BETWEEN);
}

export function inAddress(key) {
  return parse(new URLSearchParams(location.search).get(name(key)));
}

export function toAddress(key, shown) {
  const address = new URL(location.href);
  if (shown) address.searchParams.set(name(key), write(shown));
  else address.searchParams.delete(name(key));
  history.replaceState(history.state, "", address);
}

// The options of the plugin; the canvas tells the figure around it when the view has changed.
export function zoomOptions(mode) {
  const tell = ({ chart }) => chart.canvas.dispatchEvent(new CustomEvent("chartzoom"));
  return {
    zoom: {
      mode,
      drag: { enabled: true, threshold: 6 },
      wheel: { enabled: true, modifierKey: "ctrl" },
      pinch: { enabled: true },
      onZoomComplete: tell,
    },
    pan: { enabled: true, mode, modifierKey: "shift", onPanComplete: tell },
  };
}

export function shownBy(chart, mode) {
  const of = ({ min, max }) => ({ min, max });
  return { x: of(chart.scales.x), y: mode.includes("y") ? of(chart.scales.y) : null };
}

export function show(chart, shown) {
  for (const axis of ["x", "y"]) {
    const range = shown?.[axis];
    if (!range) continue;
    chart.options.scales[axis].min = range.min;
    chart.options.scales[axis].max = range.max;
  }
  chart.update("none");
}
