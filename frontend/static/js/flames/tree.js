// A tree of calls in columns: what hangs below what, how wide each frame is, and the same tree by callers. Pure.

export const ROOT = 0;
const MOST_BY_HAND = 12; // children that are sorted without calling the browser's own sort

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
  return { json, tree: finished({ names: json.names, parent, name, own }) };
}

// The sums of each side, how deep each node lies, and which children it has (`first` to `first` of the next one).
function finished(tree) {
  const { parent, own } = tree;
  const count = parent.length;
  const depth = new Uint16Array(count);
  const first = new Int32Array(count + 1);
  tree.total = own.map((values) => values.slice());
  for (let at = count - 1; at > 0; at -= 1) {
    for (const values of tree.total) values[parent[at]] += values[at];
    first[parent[at] + 1] += 1;
  }
  for (let at = 1; at < count; at += 1) depth[at] = depth[parent[at]] + 1;
  for (let at = 0; at < count; at += 1) first[at + 1] += first[at];
  const place = first.slice(0, count);
  const children = new Int32Array(Math.max(0, count - 1));
  for (let at = 1; at < count; at += 1) {
    children[place[parent[at]]] = at;
    place[parent[at]] += 1;
  }
  return { ...tree, depth, first, children };
}

// The widths of whole frames for a side, the children of each node widest first.
export function arranged(tree, side) {
  const { parent, first, children } = tree;
  let width = tree.total[side];
  if (side === "both") {
    width = widths(tree.own, side);
    for (let at = parent.length - 1; at > 0; at -= 1) width[parent[at]] += width[at];
  }
  for (let at = 0; at < parent.length; at += 1) {
    const start = first[at];
    const end = first[at + 1];
    if (end - start > MOST_BY_HAND) children.subarray(start, end).sort((a, b) => width[b] - width[a]);
    else {
      for (let next = start + 1; next < end; next += 1) {
        const one = children[next];
        let place = next;
        while (place > start && width[children[place - 1]] < width[one]) {
          children[place] = children[place - 1];
          place -= 1;
        }
        children[place] = one;
      }
    }
  }
  return { ...tree, width };
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

// By callers: the last function of each stack first, then who called it. Every stack keeps its own path.
// The stacks are sorted from their ends first, so that what two neighbours share is the path so far.
export function reversed(tree) {
  const { parent: above, name: named, depth } = tree;
  const ends = [];
  let most = 1;
  let deepest = 0;
  for (let end = 1; end < above.length; end += 1) {
    if (!tree.own.some((values) => values[end] > 0)) continue;
    ends.push(end);
    most += depth[end];
    deepest = Math.max(deepest, depth[end]);
  }
  const leaves = Int32Array.from(ends).sort((a, b) => {
    let [one, other] = [a, b];
    while (one !== ROOT && other !== ROOT && named[one] === named[other]) {
      one = above[one];
      other = above[other];
    }
    return one === ROOT || other === ROOT ? depth[one] - depth[other] : named[one] - named[other];
  });
  const parent = new Int32Array(most);
  const name = new Int32Array(most);
  const own = tree.own.map(() => new Float64Array(most));
  parent[ROOT] = name[ROOT] = -1;
  let count = 1;
  const path = new Int32Array(deepest); // the nodes of the stack before
  let length = 0;
  for (const leaf of leaves) {
    let level = 0;
    let at = ROOT;
    let frame = leaf;
    for (; frame !== ROOT && level < length && name[path[level]] === named[frame]; frame = above[frame]) {
      at = path[level];
      level += 1;
    }
    for (; frame !== ROOT; frame = above[frame]) {
      parent[count] = at;
      name[count] = named[frame];
      at = path[level] = count;
      count += 1;
      level += 1;
    }
    length = level;
    for (let side = 0; side < own.length; side += 1) own[side][at] += tree.own[side][leaf];
  }
  return finished({
    names: tree.names,
    parent: parent.subarray(0, count),
    name: name.subarray(0, count),
    own: own.map((values) => values.subarray(0, count)),
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
export function widest(tree, named) {
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
