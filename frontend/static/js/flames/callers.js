// The tree by callers: the last function of each stack first, then who called it. Every stack keeps its own path.
// Its nodes are made when somebody looks at them (`childrenOf`), for most of them are too narrow to be drawn. Pure.

import { ROOT, widths } from "./tree.js";

// `side` as in `arranged`; `keeps` says which stacks (by the node at which they end) are in it.
export function reversed(tree, side, keeps = () => true) {
  const { parent: above, name: named, names, own } = tree;
  const weighs = widths(own, side);
  const ends = [];
  for (let end = 1; end < above.length; end += 1) {
    if (own.some((values) => values[end] > 0) && keeps(end)) ends.push(end);
  }
  const found = { names, parent: [-1], name: [-1], depth: [0], width: [0], total: own.map(() => [0]) };
  // Of each node that nobody looked into yet: the stacks that pass it, and which frame of each comes next.
  const passing = [{ stacks: ends, nexts: ends }];
  const known = [];
  const place = new Int32Array(names.length).fill(-1);
  for (const end of ends) weigh(ROOT, end);

  function weigh(at, end) {
    found.width[at] += weighs[end];
    for (let one = 0; one < own.length; one += 1) found.total[one][at] += own[one][end];
  }

  function made(above_it, name) {
    const at = found.parent.length;
    found.parent.push(above_it);
    found.name.push(name);
    found.depth.push(found.depth[above_it] + 1);
    found.width.push(0);
    for (const values of found.total) values.push(0);
    passing.push({ stacks: [], nexts: [] });
    return at;
  }

  found.childrenOf = (at) => {
    if (known[at]) return known[at];
    const children = [];
    const { stacks, nexts } = passing[at];
    for (let index = 0; index < stacks.length; index += 1) {
      const frame = nexts[index];
      if (frame === ROOT) continue;
      const name = named[frame];
      if (place[name] < 0) {
        place[name] = made(at, name);
        children.push(place[name]);
      }
      const child = place[name];
      weigh(child, stacks[index]);
      passing[child].stacks.push(stacks[index]);
      passing[child].nexts.push(above[frame]);
    }
    for (const child of children) place[found.name[child]] = -1;
    passing[at] = null;
    known[at] = children.sort((a, b) => found.width[b] - found.width[a]);
    return children;
  };
  found.widest = (name) => widest(tree, side, found, name);
  return found;
}

// The widest node of this name, ROOT when there is none. Only stacks with the name are followed, and of those only what
// is wider than the best one so far: no caller is wider than what it called.
function widest(tree, side, back, asked) {
  const has = new Uint8Array(tree.parent.length);
  for (let at = 1; at < has.length; at += 1) {
    has[at] = has[tree.parent[at]] || tree.names[tree.name[at]] === asked ? 1 : 0;
  }
  const some = reversed(tree, side, (end) => has[end]);
  const ahead = [ROOT];
  let best = ROOT;
  let width = 0;
  while (ahead.length) {
    const at = ahead.pop();
    if (some.width[at] <= width) continue;
    if (at !== ROOT && some.names[some.name[at]] === asked) [best, width] = [at, some.width[at]];
    else for (const child of some.childrenOf(at).toReversed()) ahead.push(child);
  }
  return along(back, pathTo(some, best));
}

// The names from the first row to a node, by which `along` finds the same frame in a tree of other weights.
export function pathTo(tree, node) {
  const path = [];
  for (let at = node; at !== ROOT; at = tree.parent[at]) path.unshift(tree.name[at]);
  return path;
}

// The node at the end of these names; ROOT when nothing of it weighs anything.
export function along(tree, path) {
  let at = ROOT;
  for (const name of path) {
    at = tree.childrenOf(at).find((child) => tree.name[child] === name && tree.width[child] > 0) ?? ROOT;
    if (at === ROOT) return ROOT;
  }
  return at;
}
