"""Several profiles as one tree: no stack is lost, whatever it weighs, and each side keeps its own weights."""

from __future__ import annotations

import pytest

from agents.profiles.base.folding import Folding
from agents.profiles.base.profile import About, Frame, Profile
from agents.profiles.call_tree import NO_PARENT, CallTree, call_tree
from tests.agents.profiles.samples import folded, profiles
from tests.properties import given


def stacks(tree: CallTree, side: int) -> dict[tuple[str, ...], float]:
    """The stacks that end somewhere, read back from the nodes."""
    found = {}
    for at in range(len(tree)):
        path, node = [], at
        while node != NO_PARENT:
            path.append(tree.names[tree.name[node]])
            node = int(tree.parent[node])
        if tree.own[side, at] > 0:
            found[tuple(reversed(path))] = float(tree.own[side, at])
    return found


def label(frame: Frame) -> str:
    return frame.label


@given(profiles(), profiles())
def test_every_stack_of_both_sides_is_in_the_tree_with_its_weight(one: Profile, other: Profile) -> None:
    tree = call_tree([[(one, 1.0)], [(other, 2.0), (other, 1.0)]], label)
    assert (tree.parent < range(len(tree))).all()  # parents come first
    assert stacks(tree, 0) == pytest.approx(folded(one))
    assert stacks(tree, 1) == pytest.approx({stack: 3 * weight for stack, weight in folded(other).items()})


def test_a_deep_stack_and_no_profile_at_all_are_trees_too() -> None:
    folding = Folding()
    frame = folding.frame("again")
    folding.add([frame] * 4000, 1.0)
    deep = call_tree([[(folding.profile(About("samples")), 1.0)]], label)
    assert (len(deep), deep.own.sum(), len(deep.names)) == (4000, 1.0, 1)
    assert len(call_tree([[], []], label)) == 0
