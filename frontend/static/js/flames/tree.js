// A tree of calls in columns: what hangs below what, how wide each frame is, and what a part of the time weighs. Pure.

export const ROOT = 0;

// `width` is what a frame is drawn by: of two sides each stack counts as wide as in the larger one, or one side alone.
export function widths(own, side) {
  if (side !== "both") return own[side].slice();
  const found = new Float64Array(own[0].length);
  for (const values of own) for (let at = 0; at < values.length; at += 1) found[at] = Math.max(found[at], values[at]);
  return found;
}

// The answer of the page: its head, and the columns that follow (frontend/charts/flames.py). Node 0 is all of it.
export function unpacked(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  let place = 8 + length;
  const column = (Kind, size) => {
    const values = new Kind(buffer, place, json.nodes);
    place += size * json.nodes;
    return values;
  };
  const parent = column(Int32Array, 4);
  const name = column(Int32Array, 4);
  const own = Array.from({ length: json.count }, () => column(Float64Array, 8));
  const slices = json.slices && { ...json.slices, ...entries(buffer, place, json.slices.edges.at(-1)) };
  return { json, tree: finished({ names: json.names, parent, name, own }), slices };
}

// What the slices of time have: so much in the stacks that end at this node.
function entries(buffer, place, count) {
  return { weights: new Float64Array(buffer, place, count), nodes: new Int32Array(buffer, place + 8 * count, count) };
}

// The sums of each side, how deep each node lies, and which children it has (`first` to `first` of the next one).
function finished(tree) {
  const { parent, own } = tree;
  const count = parent.length;
  const depth = new Uint16Array(count);
  const first = new Int32Array(count + 1);
  for (let at = 1; at < count; at += 1) {
    depth[at] = depth[parent[at]] + 1;
    first[parent[at] + 1] += 1;
  }
  for (let at = 0; at < count; at += 1) first[at + 1] += first[at];
  const place = first.slice(0, count);
  const children = new Int32Array(Math.max(0, count - 1));
  for (let at = 1; at < count; at += 1) {
    children[place[parent[at]]] = at;
    place[parent[at]] += 1;
  }
  return { ...tree, total: summed(parent, own), depth, first, children };
}

// What each side weighs with all that was called.
function summed(parent, own) {
  return own.map((values) => {
    const total = values.slice();
    for (let at = parent.length - 1; at > 0; at -= 1) total[parent[at]] += total[at];
    return total;
  });
}

// The widths of whole frames for a side; children are sorted when somebody looks at them, the widest first.
export function arranged(tree, side) {
  const { parent, first, children } = tree;
  let width = tree.total[side];
  if (side === "both") {
    width = widths(tree.own, side);
    for (let at = parent.length - 1; at > 0; at -= 1) width[parent[at]] += width[at];
  }
  const sorted = new Uint8Array(parent.length);
  const childrenOf = (at) => {
    const found = children.subarray(first[at], first[at + 1]);
    if (!sorted[at] && found.length > 1) found.sort((a, b) => width[b] - width[a]);
    sorted[at] = 1;
    return found;
  };
  const named = { ...tree, width, childrenOf };
  named.widest = (name) => widest(named, name);
  return named;
}

// The same stacks with what they weigh in the slices of time from one to before another.
export function during(tree, { edges, weights, nodes }, from, to) {
  const own = new Float64Array(tree.parent.length);
  for (let entry = edges[from]; entry < edges[to]; entry += 1) own[nodes[entry]] += weights[entry];
  return { ...tree, own: [own], total: summed(tree.parent, [own]) };
}

// Only what is below these children of the root: a thread, or all of them without one.
export function below(tree, keeps) {
  const kept = new Int32Array(tree.parent.length).fill(-1);
  kept[ROOT] = ROOT;
  const nodes = [ROOT];
  for (let at = 1; at < kept.length; at += 1) {
    const above = tree.parent[at];
    if (kept[above] < 0 || (above === ROOT && !keeps(tree.name[at]))) continue;
    kept[at] = nodes.length;
    nodes.push(at);
  }
  return finished({
    names: tree.names,
    parent: Int32Array.from(nodes, (at) => (at === ROOT ? -1 : kept[tree.parent[at]])),
    name: Int32Array.from(nodes, (at) => tree.name[at]),
    own: tree.own.map((values) => Float64Array.from(nodes, (at) => values[at])),
  });
}

// Each function with what it costs itself and with all that it called; one that calls itself counts once.
export function functions(tree, side = 0) {
  const size = tree.names.length;
  const own = new Float64Array(size);
  const total = new Float64Array(size);
  const inside = new Int32Array(size);
  const path = [];
  const ahead = [ROOT];
  while (ahead.length) {
    const at = ahead.pop();
    if (at < 0) {
      inside[path.pop()] -= 1;
      continue;
    }
    if (at !== ROOT) {
      const named = tree.name[at];
      own[named] += tree.own[side][at];
      if (inside[named] === 0) total[named] += tree.total[side][at];
      inside[named] += 1;
      path.push(named);
      ahead.push(-1);
    }
    for (let child = tree.first[at]; child < tree.first[at + 1]; child += 1) ahead.push(tree.children[child]);
  }
  return tree.names.map((named, at) => ({ name: named, own: own[at], total: total[at] }));
}

// The widest frame of this name; ROOT when there is none.
function widest(tree, named) {
  let found = ROOT;
  for (let at = 1; at < tree.parent.length; at += 1) {
    if (tree.names[tree.name[at]] === named && (found === ROOT || tree.width[at] > tree.width[found])) found = at;
  }
  return found;
}

// What part of the whole the frames make whose names match, those below a match not counted twice.
export function matching(tree, matches) {
  const of_name = tree.names.map(matches);
  const covered = new Uint8Array(tree.parent.length);
  let sum = 0;
  for (let at = 1; at < covered.length; at += 1) {
    const hit = of_name[tree.name[at]];
    if (hit && !covered[tree.parent[at]]) sum += tree.width[at];
    covered[at] = hit || covered[tree.parent[at]] ? 1 : 0;
  }
  return { names: of_name, ratio: tree.width[ROOT] > 0 ? sum / tree.width[ROOT] : 0 };
}
