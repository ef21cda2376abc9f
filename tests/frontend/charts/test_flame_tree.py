"""The page's own tree of calls, by callers and by parts of the time, run as the browser runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agents.profiles.base.folding import Folding
from agents.profiles.base.profile import About, Profile
from agents.profiles.call_tree import call_tree
from agents.profiles.reading import read_profile
from benchhub.embedded import PROJECT_DIR
from frontend.charts.flames import packed_tree
from tests import needs

STACKS = {"a;b;c": 5, "a;c": 2, "b;c": 1, "a;b": 3, "c": 7, "c;c": 4, "a;b;c;d;c": 6}
READ = """
import { readFileSync } from "node:fs";
import { along, pathTo, reversed } from "./callers.js";
import { arranged, during, functions, ROOT, unpacked } from "./tree.js";
const { tree, slices } = unpacked(Uint8Array.from(readFileSync("packed")).buffer);
// Every node, as one sees it who zooms into all of them.
function read(some) {
  const [stacks, paths] = [{}, []];
  const ahead = [[ROOT, ""]];
  while (ahead.length) {
    const [at, path] = ahead.pop();
    paths.push(path);
    let own = some.total[0][at];
    let before = Infinity;
    for (const child of some.childrenOf(at)) {
      own -= some.total[0][child];
      if (some.width[child] > before || some.parent[child] !== at) throw new Error(`children of ${path}`);
      before = some.width[child];
      ahead.push([child, `${path}${some.names[some.name[child]]};`]);
    }
    if (own) stacks[path] = own;
  }
  return { stacks, paths };
}
"""


def run_script(tmp_path: Path, profile: Profile, script: str) -> Any:
    """What the script prints, as JSON, beside the modules of the page and the profile as the page gets it."""
    needs.require_program("node")
    tree = call_tree([[(profile, 1.0)]], lambda frame: frame.label)
    (tmp_path / "packed").write_bytes(packed_tree(tree, {}, slices=profile.slices))
    for name in ("tree.js", "callers.js"):
        (tmp_path / name).write_text((PROJECT_DIR / "frontend/static/js/flames" / name).read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "script.js").write_text(READ + script)
    done = subprocess.run(["node", "script.js"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def folded(stacks: dict[str, int]) -> Profile:
    return read_profile("".join(f"{stack} {count}\n" for stack, count in stacks.items()).encode(), "collapsed")


def test_by_callers_every_stack_keeps_its_path_and_each_function_what_it_costs_itself(tmp_path: Path) -> None:
    script = """
    const back = reversed(tree, 0);
    const ends = [...back.childrenOf(ROOT)].map((at) => [back.names[back.name[at]], back.total[0][at]]);
    console.log(JSON.stringify({ ...read(back), ends, functions: functions(tree) }));
    """
    found = run_script(tmp_path, folded(STACKS), script)
    turned = {";".join(reversed(stack.split(";"))): count for stack, count in STACKS.items()}
    assert found["stacks"] == {f"{stack};": count for stack, count in turned.items()}
    own = {"b": 3, "c": 25}
    assert dict(found["ends"]) == own  # the first row of the graph by callers
    assert {one["name"]: one["own"] for one in found["functions"]} == {"a": 0, "d": 0, **own}
    assert len(found["paths"]) == len(set(found["paths"]))


def test_by_callers_only_what_somebody_looked_at_was_made(tmp_path: Path) -> None:
    script = """
    const back = reversed(tree, 0);
    const before = back.parent.length;
    back.childrenOf(back.childrenOf(ROOT)[0]);
    const looked = back.parent.length;
    back.childrenOf(back.childrenOf(ROOT)[0]);
    const again = back.parent.length;
    console.log(JSON.stringify([before, looked, again, read(back).paths.length]));
    """
    before, looked, again, every = run_script(tmp_path, folded(STACKS), script)
    assert (before, looked, again) == (1, 1 + 2 + 4, looked)  # c and b, and then a, b, c and d, which called c
    assert looked < every


@pytest.mark.parametrize("name, expected", [("c", ["c"]), ("d", ["c", "d"]), ("a", ["c", "b", "a"])])
def test_a_function_that_is_looked_for_by_callers_is_found_where_it_is_widest(
    tmp_path: Path, name: str, expected: list[str]
) -> None:
    script = f"""
    const back = reversed(tree, 0);
    const at = back.widest({json.dumps(name)});
    const named = pathTo(back, at).map((one) => back.names[one]);
    const there = along(back, pathTo(back, at)) === at;
    const none = [back.widest("nobody"), along(back, [99])];
    console.log(JSON.stringify({{ named, there, none }}));
    """
    found = run_script(tmp_path, folded({**STACKS, "a;b;c": 50}), script)
    assert found == {"named": expected, "there": True, "none": [0, 0]}


def test_a_part_of_the_time_has_the_stacks_of_that_part_in_both_directions(tmp_path: Path) -> None:
    folding = Folding()
    for at, stack in enumerate(["ab", "ab", "abc", "abc", "b", "ab", "ab"]):
        folding.seen(folding.add([folding.frame(name) for name in stack], 2.0), at, at, 2.0)
    script = """
    const stacks = (from, to) => {
      const part = during(tree, slices, from, to);
      return [read(arranged(part, 0)).stacks, read(reversed(part, 0)).stacks];
    };
    const n = slices.edges.length - 1;
    console.log(JSON.stringify([stacks(0, n), stacks(0, n / 3), stacks(n / 3, n), stacks(1, 2)]));
    """
    every, first, rest, none = run_script(tmp_path, folding.profile(About("samples")), script)
    assert every == [{"a;b;": 8, "a;b;c;": 4, "b;": 2}, {"b;a;": 8, "c;b;a;": 4, "b;": 2}]
    assert first == [{"a;b;": 4}, {"b;a;": 4}]
    assert rest == [{"a;b;": 4, "a;b;c;": 4, "b;": 2}, {"b;a;": 4, "c;b;a;": 4, "b;": 2}]
    assert none == [{}, {}]
