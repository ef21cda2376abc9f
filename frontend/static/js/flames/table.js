// The functions of a flame graph as a table, the costliest first; a heading sorts it, a name shows the frame.
// `tree` has the callers on top, of one thread or of all; shares are of `total`, which is all threads together.

import { functions } from "./tree.js";

const MOST = 500;
const share = (value) => `${(100 * value).toFixed(value < 0.0995 ? 2 : 1)} %`;
const figure = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

function columns(json, total) {
  if (json.count > 1) {
    const unit = json.unit === "us" ? "µs" : "%";
    return [
      [`${json.sides[0]}, itself, ${unit}`, (row) => row.own, (value) => figure.format(value)],
      [`${json.sides[1]}, itself, ${unit}`, (row) => row.other, (value) => figure.format(value)],
    ];
  }
  const whole = total || 1;
  const found = [
    ["Itself", (row) => row.own / whole, share],
    ["With all it called", (row) => row.total / whole, share],
  ];
  if (json.cost_us) {
    found.push(["Itself, µs per request", (row) => (row.own / whole) * json.cost_us, (value) => figure.format(value)]);
  }
  return found;
}

export function table(tree, json, total, show) {
  const rows = functions(tree, 0);
  if (json.count > 1) {
    functions(tree, 1).forEach((row, at) => {
      rows[at].other = row.own;
    });
  }
  const shown = columns(json, total);
  const made = document.createElement("table");
  made.className = "table";
  const head = made.createTHead().insertRow();
  const body = made.createTBody();
  const note = document.createElement("caption");
  note.className = "small muted";
  made.prepend(note);
  const fill = (by) => {
    const value = shown[by][1];
    const some = rows.filter((row) => row.total > 0 || row.other > 0).sort((a, b) => value(b) - value(a));
    note.textContent =
      some.length > MOST ? `The first ${MOST} of ${some.length} functions` : `${some.length} functions`;
    body.replaceChildren();
    for (const row of some.slice(0, MOST)) {
      const line = body.insertRow();
      const name = document.createElement("th");
      name.scope = "row";
      name.className = "wrap";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "link mono";
      button.textContent = row.name;
      button.addEventListener("click", () => show(row.name));
      name.append(button);
      line.append(name);
      for (const [, read, words] of shown) {
        const cell = line.insertCell();
        cell.className = "num";
        cell.textContent = words(read(row));
      }
    }
    [...head.cells].forEach((cell, at) => {
      if (at > 0) cell.setAttribute("aria-sort", at - 1 === by ? "descending" : "none");
    });
  };
  const first = document.createElement("th");
  first.scope = "col";
  first.textContent = "Function";
  head.append(first);
  shown.forEach(([title], at) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.className = "num";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "link";
    button.textContent = title;
    button.addEventListener("click", () => fill(at));
    cell.append(button);
    head.append(cell);
  });
  fill(0);
  return made;
}
