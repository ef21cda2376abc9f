"""Profiles of real tools are read, written and read again; whatever is wrong with a file is said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from agents.base.errors import ParseError
from agents.profiles import PROFILE_FORMATS
from agents.profiles.base import folding as limits
from agents.profiles.base.folding import Folding
from agents.profiles.base.profile import UNKNOWN, About, Profile
from agents.profiles.functions import functions_of
from agents.profiles.pprof.otlp_format import write as write_otlp
from agents.profiles.pprof.pprof_format import write as write_pprof
from agents.profiles.pprof.wire import bytes_field, encoded, fields, nested, number_field
from agents.profiles.reading import form_of, read_profile, unpacked
from tests.agents.profiles.samples import exact, folded, profiles
from tests.agents.recorded import CASES, damaged
from tests.properties import given, settings, st

RECORDED = sorted((CASES / "profiles").glob("*.expected.json"))
TEXTS = ("collapsed", "cpuprofile", "perf-script", "speedscope")


def recorded(expected: Path) -> Path:
    stem = expected.name.removesuffix(".expected.json")
    return next(path for path in expected.parent.glob(f"{stem}.*") if path != expected)


def of_kind(kind: str) -> list[bytes]:
    return [
        unpacked(recorded(path).read_bytes()) for path in RECORDED if json.loads(path.read_text())["format"] == kind
    ]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".expected.json"))
def test_a_recorded_profile_has_the_figures_that_its_tool_shows(path: Path) -> None:
    about = json.loads(path.read_text())
    data = recorded(path).read_bytes()
    assert form_of(unpacked(data)).kind == about["format"]
    profile = read_profile(data)
    functions = functions_of(profile)
    found = {
        "unit": profile.about.unit,
        "event": profile.about.event,
        "engine": profile.about.engine,
        "samples": profile.about.samples,
        "weight": pytest.approx(profile.weight),
        "stacks": len(profile),
        "unknown_ratio": pytest.approx(functions.unknown_ratio, abs=1e-6),
    }
    expected = about["expected"]
    assert found == {name: expected[name] for name in found}
    for name in ("self_ratio", "total_ratio"):
        ratios = getattr(functions, name)
        assert {one: ratios[one] for one in expected[name]} == pytest.approx(expected[name], abs=1e-6)
    assert sum(functions.self_ratio.values()) == pytest.approx(1)


@given(profiles())
def test_pprof_gives_back_what_was_written(profile: Profile) -> None:
    again = read_profile(write_pprof(profile))
    assert exact(again) == exact(profile)
    assert (again.about.unit, again.about.event, again.about.engine) == (
        profile.about.unit,
        profile.about.event,
        profile.about.engine,
    )


@given(profiles(), st.data())
def test_otlp_gives_back_what_was_written_with_its_times(profile: Profile, data: st.DataObject) -> None:
    folding, timed = Folding(), data.draw(st.booleans())
    for frames, weight in profile.stacks():
        number = folding.add([folding.frame(frame.name, frame.place) for frame in frames], weight)
        if timed:
            at_s = data.draw(st.integers(0, 10**6))
            folding.seen(number, at_s, at_s, weight)
    back = read_profile(write_otlp(folding, profile.about), "otlp")
    assert exact(back) == exact(profile)
    assert (back.about.unit, back.about.event) == (profile.about.unit, profile.about.event)
    expected = folding.profile(profile.about).slices
    assert (back.slices is None) is (expected is None)
    if expected is not None and back.slices is not None:
        assert (back.slices.start_s, back.slices.step_s) == (expected.start_s, expected.step_s)
        assert np.array_equal(np.diff(back.slices.edges), np.diff(expected.edges))


def test_the_profiles_of_all_chunks_of_a_recording_are_added_together() -> None:
    once = (CASES / "profiles" / "otlp-jfr-converter.otlp").read_bytes()
    fields_of = list(fields(memoryview(once)))
    (profiles_of,), (tables,) = ([nested(value) for name, value in fields_of if name == part] for part in (1, 2))
    twice = bytes_field(1, bytes(profiles_of)) * 2 + bytes_field(2, bytes(tables))
    whole, found = read_profile(once), read_profile(twice)
    assert exact(found) == {stack: 2 * weight for stack, weight in exact(whole).items()}
    assert found.about.samples == 2 * (whole.about.samples or 0)
    assert found.slices is not None


@given(profiles())
def test_speedscope_gives_back_what_was_written(profile: Profile) -> None:
    form = PROFILE_FORMATS["speedscope"]
    assert form.write is not None
    again = read_profile(form.write(profile))
    assert exact(again) == exact(profile)
    assert again.about.unit == profile.about.unit


@given(profiles())
def test_collapsed_stacks_give_back_what_was_written(profile: Profile) -> None:
    form = PROFILE_FORMATS["collapsed"]
    assert form.write is not None
    assert folded(form.read(form.write(profile))) == folded(profile)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".expected.json"))
def test_functions_are_the_same_in_every_form_that_is_written(path: Path) -> None:
    profile = read_profile(recorded(path).read_bytes())
    before = functions_of(profile)
    for form in PROFILE_FORMATS.values():
        if form.write is not None:
            written = form.write(profile)
            assert form_of(unpacked(written)) is form
            after = functions_of(read_profile(written))
            assert after.self_ratio == pytest.approx(before.self_ratio, abs=1e-6)
            assert after.total_ratio == pytest.approx(before.total_ratio, abs=1e-6)


def test_what_cannot_stand_in_a_collapsed_name_becomes_a_colon() -> None:
    folding = Folding()
    folding.add([folding.frame("a(Ljava/lang/String;)V"), folding.frame("b\nc")], 3)
    form = PROFILE_FORMATS["collapsed"]
    assert form.write is not None
    assert form.write(folding.profile(About("samples"))) == b"a(Ljava/lang/String:)V;b:c 3\n"


@pytest.mark.parametrize("kind", TEXTS)
def test_a_damaged_text_gives_a_profile_or_a_clear_error(kind: str) -> None:
    @settings(max_examples=60)
    @given(damaged([text.decode() for text in of_kind(kind)]))
    def holds(text: str) -> None:
        read_or_refused(kind, text.encode("utf-8", "replace"))

    holds()


@given(st.data(), st.sampled_from(["otlp", "pprof"]))
def test_a_damaged_binary_gives_a_profile_or_a_clear_error(data: st.DataObject, kind: str) -> None:
    whole = bytearray(data.draw(st.sampled_from(of_kind(kind))))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read_or_refused(kind, bytes(whole[: data.draw(st.integers(0, len(whole)))]))


@given(st.sampled_from(sorted(PROFILE_FORMATS)), st.binary(max_size=300))
def test_any_bytes_give_a_profile_or_a_clear_error(kind: str, data: bytes) -> None:
    read_or_refused(kind, data)


def read_or_refused(kind: str, data: bytes) -> None:
    try:
        profile = PROFILE_FORMATS[kind].read(data)
    except ParseError:
        return
    assert len(profile) > 0
    assert np.isfinite(profile.weights).all()
    assert (profile.weights > 0).all()
    assert profile.places.max() < len(profile.frames)


def test_a_hundred_thousand_distinct_stacks_are_kept_and_take_few_bytes() -> None:
    folding = Folding()
    frames = [folding.frame(f"com/acme/Handler{number}.call") for number in range(1000)]
    for number in range(100_000):
        deep = [frames[(number * step) % 1000] for step in range(1, 29)]
        folding.add([*deep, frames[number // 1000], frames[number % 1000]], 1)
    profile = folding.profile(About("samples"))
    assert len(profile) == 100_000
    assert profile.weight == 100_000
    assert profile.places.nbytes + profile.edges.nbytes + profile.weights.nbytes < 15_000_000
    with pytest.raises(ValueError, match="read-only"):
        profile.weights[0] = 2


SPEEDSCOPE = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "a"}]}}
SAMPLED = {"type": "sampled", "unit": "none", "samples": [[0]], "weights": [1]}
NODE = {"id": 1, "callFrame": {"functionName": "(root)"}, "hitCount": 1}
EVENT = {"type": "O", "frame": 0, "at": 2}


def speedscope(**profile: object) -> bytes:
    return json.dumps({**SPEEDSCOPE, "profiles": [{**SAMPLED, **profile}]}).encode()


def cpuprofile(*nodes: dict[str, object], **more: object) -> bytes:
    return json.dumps({"nodes": [{**NODE, **node} for node in nodes], **more}).encode()


def evented(*events: dict[str, object]) -> bytes:
    return speedscope(type="evented", startValue=0, events=list(events))


NAMELESS = bytes_field(1, number_field(1, 1)) + bytes_field(6, b"") + bytes_field(6, b"cpu")


def pprof(*parts: bytes) -> bytes:
    return NAMELESS + b"".join(parts)


def otlp(profile: bytes) -> bytes:
    """A file of one profile; its tables have one stack, of no frame."""
    tables = bytes_field(7, b"") + bytes_field(5, b"") + bytes_field(5, b"count")
    return bytes_field(1, bytes_field(2, bytes_field(2, profile))) + bytes_field(2, tables)


REFUSED = (
    ("collapsed", b"a;b 1\nno count\n", "line 2 is no stack with its count"),
    ("collapsed", b"a;b -1\n", "line 1 is no stack"),
    ("collapsed", b"", "there is no sample"),
    ("collapsed", b"a 0\n", "there is no sample"),
    ("collapsed", ";".join(["a"] * 5000).encode() + b" 1", "a stack of more than 4,096 frames"),
    ("collapsed", b"\xd9\xa3 x\n", "line 1 is no stack"),
    ("perf-script", b"\t  1180 parse+0x27 (/bin/busy)\n", "line 1 is a frame without a sample"),
    ("perf-script", b"a 1 1.0: 5 cycles:\n\t 11 f (x)\n\na 1 2.0: 5 cpu-clock:\n", "is a sample of cpu-clock"),
    ("perf-script", b"busy was here\n", "neither a sample nor a frame"),
    ("perf-script", b"a" * 30_000, "line 1 has 30,000 characters"),
    ("speedscope", b"{}", "shared"),
    ("speedscope", b'{"shared"', "the document of the profile of speedscope"),
    ("speedscope", b"[" * 100_000, "the document"),
    ("speedscope", speedscope(samples=[[1]]), "profiles > 0 > samples > 0 names frame 1; there are 1"),
    ("speedscope", speedscope(samples=[[-1]]), "names frame -1"),
    ("speedscope", speedscope(weights=[]), "1 samples and 0 weights"),
    ("speedscope", speedscope(weights=[-3]), "a stack weighs -3"),
    ("speedscope", speedscope(unit="parsecs"), "unit"),
    ("speedscope", evented(EVENT), "opened and never closed"),
    ("speedscope", evented(EVENT, {**EVENT, "at": 1}), "is earlier than the one before it"),
    ("speedscope", evented({**EVENT, "type": "C"}), "closes a frame that is not the last one opened"),
    ("cpuprofile", cpuprofile({"children": [2]}), "node 2 of the profile is missing"),
    ("cpuprofile", cpuprofile({"children": [1]}), "go round in a circle"),
    ("cpuprofile", cpuprofile({}, {}), "two nodes of the profile have the same id"),
    ("cpuprofile", cpuprofile({}, samples=[7]), "a sample is of node 7"),
    ("cpuprofile", cpuprofile({"id": "one"}), "nodes > 0 > id"),
    ("pprof", b"", "no type of sample"),
    ("pprof", b"\x0a\xff\xff\xff\xff\x0f", "a field of"),
    ("pprof", b"\x08" + b"\xff" * 11, "more than ten bytes"),
    ("pprof", b"\x0b", "a field of the kind 3"),
    ("pprof", pprof(bytes_field(2, bytes_field(1, encoded(9)) + bytes_field(2, b"\1"))), "names location 9"),
    ("pprof", pprof(bytes_field(2, bytes_field(2, b"\1\2"))), "a sample has 2 values; the profile has 1"),
    ("pprof", pprof(bytes_field(5, number_field(1, 1) + number_field(2, 99))), "names text 99 of 2"),
    ("pprof", pprof(bytes_field(4, number_field(1, 1) + bytes_field(4, number_field(1, 5)))), "names function 5"),
    ("pprof", pprof(bytes_field(2, bytes_field(2, encoded(-5)))), "a stack weighs -5"),
    ("otlp", b"", "the file has no profile"),
    ("otlp", otlp(bytes_field(1, b"")) + otlp(bytes_field(1, number_field(2, 1))), "has profiles of 2 events"),
    ("otlp", otlp(b""), "there is no sample"),
    ("otlp", otlp(bytes_field(2, number_field(1, 3) + bytes_field(4, b"\1"))), "names entry 3 of table 7, which has 1"),
    ("otlp", otlp(bytes_field(2, bytes_field(5, b"\1" * 7))), "no numbers of 64 bits"),
    ("otlp", otlp(bytes_field(2, bytes_field(4, b"\1\1") + bytes_field(5, b"\1" * 8))), "has 2 values at 1 times"),
    ("otlp", otlp(bytes_field(2, bytes_field(2, b"\2") + bytes_field(4, b"\1"))), "names entry 2 of table 6"),
)


@pytest.mark.parametrize("kind, data, message", REFUSED, ids=lambda value: str(value)[:40])
def test_an_error_names_what_is_wrong_with_a_profile(kind: str, data: bytes, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        PROFILE_FORMATS[kind].read(data)
    assert message in refused.value.message


def test_a_file_is_unpacked_within_the_limit_only(monkeypatch: pytest.MonkeyPatch) -> None:
    packed_file = gzip.compress(b"a;b 1\n" * 10_000)
    assert read_profile(packed_file).weight == 10_000
    with pytest.raises(ParseError, match="ends too early"):
        read_profile(packed_file[:-12])
    with pytest.raises(ParseError, match="no whole gzip"):
        read_profile(b"\x1f\x8b\x08\x00rubbish that is no gzip")
    monkeypatch.setattr("agents.profiles.reading.MAX_BYTES", 1000)
    monkeypatch.setattr("agents.profiles.reading.not_larger", lambda size: limits.not_larger(size, 1000))
    with pytest.raises(ParseError, match="more than"):
        read_profile(packed_file)


@pytest.mark.parametrize(
    "data, message",
    [
        (b"FLR\0\0\2\0\1", "JDK Flight Recorder"),
        (b"hello", "no profile that is known"),
        (b"", "no profile that is known"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_with_what_to_do(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=message) as refused:
        read_profile(data)
    assert refused.value.hint
    with pytest.raises(ParseError, match="there is no form of profile called 'gprof'"):
        read_profile(data, "gprof")


def test_threads_of_perf_lost_samples_and_samples_without_a_stack_are_kept() -> None:
    text = (
        b"# comment\n"
        b"http exec-3   12/34  [001] 1.5:  7 cycles:u: \n\t 7f01 render+0x1f (/opt/app/my lib.so)\n"
        b"\t 7f02 [unknown] ([unknown])\n\t 7f03 main (inlined)\n\n"
        b"http exec-3   12/34  [001] 1.6:  5 cycles:u: \n\n"
        b"http exec-3   12/34  [001] 1.7:  3 cycles:u:  7f09 render+0x2 (/opt/app/my lib.so)\n"
        b"http exec-3    12 [001] 1.8: PERF_RECORD_LOST lost 12\n"
    )
    profile = read_profile(text)
    assert folded(profile) == {
        ("[http exec-3 tid=34]", "main", UNKNOWN, "render (my lib.so)"): 7,
        ("[http exec-3 tid=34]", UNKNOWN): 5,
        ("[http exec-3 tid=34]", "render (my lib.so)"): 3,
    }
    assert profile.about == About("events", "cycles", "perf", None, 3, 12)


def test_a_command_whose_name_could_be_an_address_is_a_sample() -> None:
    text = b"              dd    12 1.5:   7 cpu-clock:  7f01 copy+0x1f (/bin/dd)\n"
    assert folded(read_profile(text)) == {("[dd tid=12]", "copy (dd)"): 7}


def test_time_in_which_a_thread_of_node_was_idle_is_no_cpu_time() -> None:
    idle = {"id": 2, "callFrame": {"functionName": "(idle)"}, "hitCount": 90}
    busy = {"id": 3, "callFrame": {"functionName": "", "url": "file:///a/b.js"}, "hitCount": 10}
    data = cpuprofile({"children": [2, 3], "hitCount": 0}, idle, busy)
    assert folded(read_profile(data)) == {("(anonymous) (file:///a/b.js)",): 10}


def test_opened_and_closed_frames_of_speedscope_become_time_in_stacks() -> None:
    frames = {"frames": [{"name": "a"}, {"name": "b", "file": "b.py"}]}
    events = [(0, "O", 1), (1, "O", 3), (1, "C", 4), (0, "C", 9)]
    one = {
        "type": "evented",
        "unit": "milliseconds",
        "name": "main",
        "startValue": 0,
        "events": [{"type": kind, "frame": frame, "at": at} for frame, kind, at in events],
    }
    data = json.dumps({**SPEEDSCOPE, "shared": frames, "profiles": [one]}).encode()
    assert folded(read_profile(data)) == {("a",): 7e6, ("a", "b (b.py)"): 1e6}
    both = json.dumps({**SPEEDSCOPE, "shared": frames, "profiles": [one, {**one, "name": "other"}]}).encode()
    assert ("thread (other)", "a") in folded(read_profile(both))
