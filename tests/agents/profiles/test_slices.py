"""When samples were taken: kept in slices where a file says it of all of them, and never made up where it does not."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from agents.base.errors import ParseError
from agents.profiles.base.folding import Folding
from agents.profiles.base.profile import About, Profile
from agents.profiles.base.slices import MOST_SLICES, Slices
from agents.profiles.packing import pack, unpack
from agents.profiles.reading import read_profile
from tests.agents.profiles.samples import profiles
from tests.agents.recorded import CASES
from tests.properties import given, st


def course(profile: Profile) -> list[dict[str, float]]:
    """What each slice weighs, by the last frame of the stacks."""
    slices = profile.slices
    assert slices is not None
    leaves = [stack[-1].name for stack, _ in profile.stacks()]
    found = []
    for at in range(len(slices)):
        some = range(slices.edges[at], slices.edges[at + 1])
        found.append({leaves[slices.stacks[one]]: float(slices.weights[one]) for one in some})
    return found


def filled(profile: Profile) -> dict[int, dict[str, float]]:
    return {at: one for at, one in enumerate(course(profile)) if one}


def timed(samples: Sequence[tuple[str, float, float, float]]) -> Profile:
    folding = Folding()
    for name, begin_s, end_s, weight in samples:
        folding.seen(folding.add([folding.frame(name)], weight), begin_s, end_s, weight)
    return folding.profile(About("samples"))


def test_samples_of_perf_are_in_the_slice_of_their_time() -> None:
    text = "".join(
        f"busy 7 {at}: 5 cycles:\n\t 11 {name} (x)\n\n" for at, name in ((100.0, "f"), (103.0, "g"), (106.0, "f"))
    )
    profile = read_profile(text.encode())
    assert filled(profile) == {0: {"f": 5}, MOST_SLICES // 2: {"g": 5}, MOST_SLICES - 1: {"f": 5}}
    assert profile.slices is not None
    assert [profile.slices.start_s, profile.slices.step_s] == pytest.approx([100.0, 0.1])


def test_samples_of_v8_are_on_its_clock_and_idle_ones_in_no_slice() -> None:
    def node(number: int, name: str) -> dict[str, object]:
        return {"id": number, "callFrame": {"functionName": name}, "hitCount": 0}

    nodes = [{**node(1, "(root)"), "children": [2, 3]}, node(2, "work"), node(3, "(idle)")]
    document = {"nodes": nodes, "samples": [2, 3, 2], "startTime": 5e6, "timeDeltas": [1e6, 1e6, 5e6]}
    profile = read_profile(json.dumps(document).encode())
    assert filled(profile) == {0: {"work": 1}, MOST_SLICES - 1: {"work": 1}}
    assert profile.slices is not None
    assert profile.slices.start_s == 6.0
    for without in ({**document, "timeDeltas": None}, {**document, "timeDeltas": [1]}, {**document, "samples": None}):
        nodes[1]["hitCount"] = 3
        assert read_profile(json.dumps(without).encode()).slices is None


def test_time_in_a_frame_of_speedscope_is_divided_among_the_slices_that_it_spans() -> None:
    events = [{"type": kind, "frame": 0, "at": at} for kind, at in (("O", 0), ("C", 30), ("O", 45), ("C", 60))]
    one = {"type": "evented", "unit": "seconds", "events": events}
    shared = {"frames": [{"name": "a"}]}
    profile = read_profile(json.dumps({"shared": shared, "profiles": [one]}).encode())
    assert course(profile) == [{"a": pytest.approx(1e9)}] * 30 + [{}] * 15 + [{"a": pytest.approx(1e9)}] * 15
    counted = {"type": "sampled", "unit": "seconds", "samples": [[0]], "weights": [1]}
    both = {"shared": shared, "profiles": [one, counted]}
    assert read_profile(json.dumps(both).encode()).slices is None  # of a part of the samples nothing is said


def test_samples_of_a_recording_of_the_jvm_have_their_times_with_their_thread() -> None:
    profile = read_profile((CASES / "profiles" / "otlp-jfr-converter.otlp").read_bytes())
    at = sorted(filled(profile))
    early = [one for one in at if "early" in str(filled(profile)[one])]
    assert early[0] < MOST_SLICES // 2  # the program did one half of its work, and then the other one
    assert {stack[0].name for stack, _ in profile.stacks()} == {"[main tid=1]"}


@pytest.mark.parametrize("name", ["collapsed-pyspy.txt", "pprof-go.pb.gz", "speedscope-pyspy.json"])
def test_a_file_that_does_not_say_when_has_no_slices(name: str) -> None:
    assert read_profile((CASES / "profiles" / name).read_bytes()).slices is None


@pytest.mark.parametrize("name", ["cpuprofile-node.cpuprofile", "otlp-jfr-converter.otlp", "perf-script-native.txt"])
def test_recorded_profiles_lose_nothing_to_their_slices(name: str) -> None:
    profile = read_profile((CASES / "profiles" / name).read_bytes())
    whole(profile)


MOMENT = st.floats(-1e6, 1e6)
SAMPLE = st.tuples(st.sampled_from("abc"), MOMENT, MOMENT, st.integers(1, 10**9)).map(
    lambda one: (one[0], min(one[1:3]), max(one[1:3]), float(one[3]))
)


@given(st.lists(SAMPLE, min_size=1, max_size=30))
def test_whatever_the_times_slices_weigh_what_the_stacks_weigh_and_come_back_from_storage(
    samples: list[tuple[str, float, float, float]],
) -> None:
    profile = timed(samples)
    if profile.slices is not None:
        whole(profile)
        back = unpack(pack(profile)).slices
        assert back is not None
        assert (back.start_s, back.step_s) == (profile.slices.start_s, profile.slices.step_s)
        for name in ("edges", "stacks", "weights"):
            assert (getattr(back, name) == getattr(profile.slices, name)).all()


def whole(profile: Profile) -> None:
    slices = profile.slices
    assert slices is not None
    assert len(slices) <= MOST_SLICES
    assert np.bincount(slices.stacks, slices.weights, len(profile)) == pytest.approx(profile.weights)


def test_samples_of_one_moment_have_no_course_in_time() -> None:
    assert timed([("a", 5.0, 5.0, 1.0), ("b", 5.0, 5.0, 1.0)]).slices is None


@given(profiles())
def test_what_was_stored_before_there_were_slices_is_read_and_has_none(profile: Profile) -> None:
    text = zlib.decompress(pack(profile))
    head = json.loads(text[8 : 8 + int.from_bytes(text[:8], "little")])
    assert set(head) == {"about", "frames", "stacks", "places"}  # as it has always been
    assert unpack(pack(profile)).slices is None


@pytest.mark.parametrize(
    "damage",
    [
        {"stacks": np.array([0, 7], np.int32)},
        {"weights": np.array([1.0, 9.0])},
        {"weights": np.array([1.0, np.nan])},
        {"step_s": 0.0},
        {"edges": np.array([0, 2, 1, 2], np.int64)},
    ],
    ids=lambda one: next(iter(one)),
)
def test_damaged_slices_in_storage_are_refused(damage: dict[str, object]) -> None:
    profile = timed([("a", 0.0, 0.0, 1.0), ("b", 6.0, 6.0, 1.0)])
    assert isinstance(profile.slices, Slices)
    with pytest.raises(ParseError, match="slices of a stored profile are damaged"):
        unpack(pack(replace(profile, slices=replace(profile.slices, **damage))))  # type: ignore[arg-type]
