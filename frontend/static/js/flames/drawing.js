// Draws the part of a tree that is in sight on a canvas, the callers on top; a frame is never narrower than its share.

import { ROOT } from "./tree.js";

export const ROW = 19; // pixels
const NARROW = 0.6; // below that many pixels the rest of the children are one bar: zooming in shows them
const LABELLED = 26;

function colour(probe, name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export function palette() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const read = (name) => colour(probe, name);
  const found = {
    text: read("--text"),
    faint: read("--text-2"),
    surface: read("--surface"),
    focus: read("--focus"),
    rest: read("--flame-rest"),
    found: read("--flame-found"),
    onFound: read("--on-accent"),
    more: read("--flame-more"),
    less: read("--flame-less"),
    same: read("--flame-same"),
    plain: [1, 2, 3, 4, 5].map((index) => read(`--flame-${index}`)),
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
  };
  probe.remove();
  return found;
}

// Frames of one package or file have one colour.
export function shade(label, count) {
  const group = label.replace(/\(.*$/, "").replace(/[.:/][^.:/]*$/, "") || label;
  let hash = 0;
  for (let at = 0; at < group.length; at += 1) hash = (hash * 31 + group.charCodeAt(at)) >>> 0;
  return hash % count;
}

function fitting(context, label, room) {
  if (context.measureText(label).width <= room) return label;
  const short = label.replace(/^.*\/(?=[^/]*$)/, "");
  if (short !== label && context.measureText(short).width <= room) return short;
  let end = Math.floor(short.length * Math.min(1, room / context.measureText(short).width));
  while (end > 1 && context.measureText(`${short.slice(0, end)}…`).width > room) end -= 1;
  return end > 1 ? `${short.slice(0, end)}…` : "";
}

// Where frames are: `{ at, x, y, w, rest }` in pixels, the path to the zoomed frame above it in full width.
export function layout(tree, zoomed, across) {
  const found = [];
  const path = [];
  for (let at = zoomed; at !== -1; at = tree.parent[at]) path.unshift(at);
  path.forEach((at, row) => {
    found.push({ at, x: 0, y: row * ROW, w: across, rest: false });
  });
  const whole = tree.width[zoomed];
  const ahead = [[zoomed, 0, path.length]];
  let deepest = path.length;
  while (ahead.length && whole > 0) {
    const [above, left, row] = ahead.pop();
    const y = row * ROW;
    let x = left;
    const children = tree.childrenOf(above);
    for (let child = 0; child < children.length; child += 1) {
      const at = children[child];
      const w = (tree.width[at] / whole) * across;
      if (w <= 0) break;
      if (w < NARROW) {
        let sum = 0;
        for (let other = child; other < children.length; other += 1) sum += tree.width[children[other]];
        const rest = (sum / whole) * across;
        if (rest >= NARROW / 2) found.push({ at: above, x, y, w: rest, rest: true });
        deepest = Math.max(deepest, row + 1);
        break;
      }
      found.push({ at, x, y, w, rest: false });
      deepest = Math.max(deepest, row + 1);
      ahead.push([at, x, row + 1]);
      x += w;
    }
  }
  return { frames: found, rows: deepest };
}

function fillOf(view, at, colours) {
  if (at === ROOT) return colours.same;
  const named = view.tree.name[at];
  if (view.found) return view.found[named] ? colours.found : colours.rest;
  if (view.verdicts) return colours[view.verdicts[named]] ?? colours.same;
  return colours.plain[view.shades[named]];
}

// Draws the frames that are in sight from `view.top` on.
export function draw(canvas, view, frames) {
  const ratio = devicePixelRatio || 1;
  const { across, high, top } = view;
  canvas.width = Math.round(across * ratio);
  canvas.height = Math.round(high * ratio);
  canvas.style.height = `${high}px`;
  const context = canvas.getContext("2d");
  const colours = view.colours;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, across, high);
  context.font = colours.font;
  context.textBaseline = "middle";
  for (const { at, x, y: down, w, rest } of frames) {
    const y = down - top;
    if (y <= -ROW || y >= high) continue;
    const fill = rest ? colours.rest : fillOf(view, at, colours);
    const inner = Math.max(w - 1, 0.5);
    context.fillStyle = fill;
    context.fillRect(x, y, inner, ROW - 1);
    const gone = !rest && view.goneOrNew?.(at);
    if (gone && w > 4) {
      context.strokeStyle = colours.faint;
      context.setLineDash([3, 2]);
      context.strokeRect(x + 1, y + 1, Math.max(inner - 2, 1), ROW - 3);
      context.setLineDash([]);
    }
    if (!rest && at === view.selected) {
      context.strokeStyle = colours.focus;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(inner - 2, 1), ROW - 3);
      context.lineWidth = 1;
    }
    if (w < LABELLED || rest) continue;
    context.fillStyle = fill === colours.found ? colours.onFound : colours.text;
    const label = fitting(context, view.labelOf(at), w - 8);
    if (label) context.fillText(label, x + 4, y + ROW / 2);
  }
}
