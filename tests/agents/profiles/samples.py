"""Profiles made up by hypothesis, and their stacks as a test compares them."""

from __future__ import annotations

from agents.profiles.base.folding import Folding
from agents.profiles.base.profile import About, Profile, Unit
from tests.properties import st

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters=";\x7f\x85"), min_size=1)
PLACES = st.sampled_from(["", "", "busy.py", "libc.so.6", "/srv/app/page.js"])


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A profile of some stacks whose weights are whole, as every form can write them."""
    unit: Unit = draw(st.sampled_from(["samples", "nanoseconds", "bytes"]))
    pool = draw(st.lists(st.tuples(NAMES, PLACES), min_size=1, max_size=8))
    folding = Folding()
    for stack in draw(st.lists(st.lists(st.sampled_from(pool), min_size=1, max_size=12), min_size=1, max_size=20)):
        folding.add([folding.frame(*frame) for frame in stack], draw(st.integers(1, 10**12)))
    engine = draw(st.sampled_from([None, "async-profiler"]))
    return folding.profile(About(unit, draw(st.sampled_from([None, "cpu", "wall"])), engine))


def folded(profile: Profile) -> dict[tuple[str, ...], float]:
    """The weight of each stack, its frames by their labels."""
    found: dict[tuple[str, ...], float] = {}
    for stack, weight in profile.stacks():
        labels = tuple(frame.label for frame in stack)
        found[labels] = found.get(labels, 0.0) + weight
    return found


def exact(profile: Profile) -> dict[tuple[tuple[str, str], ...], float]:
    """The weight of each stack, its frames by name and place."""
    return {tuple((frame.name, frame.place) for frame in stack): weight for stack, weight in profile.stacks()}
