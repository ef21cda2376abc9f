"""The page's own tree of calls, by callers, run as the browser runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from agents.profiles.call_tree import call_tree
from agents.profiles.reading import read_profile
from benchhub.embedded import PROJECT_DIR
from frontend.charts.flames import packed_tree
from tests import needs

STACKS = {"a;b;c": 5, "a;c": 2, "b;c": 1, "a;b": 3, "c": 7, "c;c": 4, "a;b;c;d;c": 6}
SCRIPT = """
import { readFileSync } from "node:fs";
import { functions, reversed, unpacked } from "./tree.mjs";
const { tree } = unpacked(Uint8Array.from(readFileSync("packed")).buffer);
const back = reversed(tree);
const paths = [""];
const stacks = {};
for (let at = 1; at < back.parent.length; at += 1) {
  paths.push(`${back.names[back.name[at]]};${paths[back.parent[at]]}`);
  if (back.own[0][at]) stacks[paths[at].slice(0, -1)] = back.own[0][at];
}
const ends = [...back.children.subarray(0, back.first[1])].map((at) => [back.names[back.name[at]], back.total[0][at]]);
const distinct = new Set(paths).size;
console.log(JSON.stringify({ stacks, ends, functions: functions(tree), nodes: paths.length, distinct }));
"""


def test_by_callers_every_stack_keeps_its_path_and_each_function_what_it_costs_itself(tmp_path: Path) -> None:
    needs.require_program("node")
    profile = read_profile("".join(f"{stack} {count}\n" for stack, count in STACKS.items()).encode(), "collapsed")
    (tmp_path / "packed").write_bytes(packed_tree(call_tree([[(profile, 1.0)]], lambda frame: frame.label), {}))
    (tmp_path / "tree.mjs").write_text((PROJECT_DIR / "frontend/static/js/flames/tree.js").read_text())
    (tmp_path / "script.mjs").write_text(SCRIPT)
    done = subprocess.run(["node", "script.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert found["stacks"] == STACKS
    own = {"b": 3, "c": 25}
    assert dict(found["ends"]) == own  # the first row of the graph by callers
    assert {one["name"]: one["own"] for one in found["functions"]} == {"a": 0, "d": 0, **own}
    assert found["nodes"] == found["distinct"]
