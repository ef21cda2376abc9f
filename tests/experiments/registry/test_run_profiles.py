"""Profiles of runs: one intake for what a run records and what others send; they leave with the run, whole or never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.base.errors import FenceError, ParseError
from agents.profiles.base.profile import Profile
from agents.profiles.base.taken import TakenProfile
from agents.profiles.packing import pack, unpack
from agents.profiles.reading import read_profile
from agents.record import Record
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.keeping.retention.policy import forecast
from experiments.keeping.transfer.exporting import export_team
from experiments.keeping.transfer.importing import import_team
from experiments.models import Artifact, Member, Run, RunProfile
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.runs.run_profiles import folded, profile_named, store_run_profile
from experiments.registry.teams.quotas import measure_files
from experiments.running.ending.conclusion import conclude
from experiments.running.executing.recorder import Recorder
from experiments.running.queue.dispatch import claim_next
from tests.agents.profiles.samples import exact, profiles
from tests.experiments.finished import whole_run
from tests.experiments.keeping.test_retention import old
from tests.frontend.conftest import MakeRun, make_run
from tests.properties import given

__all__ = ["make_run"]

CASES = Path(__file__).parents[2] / "agents" / "cases" / "profiles"
JAVA = (CASES / "collapsed-async-profiler.txt").read_bytes()
GO = (CASES / "pprof-go.pb.gz").read_bytes()
CPU = TakenProfile("async-profiler", event="cpu", engine="async-profiler", window_s=(2.0, 8.0))


@given(profiles())
def test_what_is_packed_comes_back_whole_and_what_is_damaged_does_not(profile: Profile) -> None:
    packed = pack(profile)
    back = unpack(packed)
    assert (exact(back), back.about) == (exact(profile), profile.about)
    for damaged in (b"", packed[:-9], b"\x00" + packed, packed[: len(packed) // 2]):
        with pytest.raises(ParseError):
            unpack(damaged)


def test_a_profile_of_a_live_run_gets_cpu_time_and_requests_of_its_window_at_the_end(
    admin: Member, stock: dict[str, Any]
) -> None:
    launch_run(admin, Choice(**stock))
    run = claim_next("worker")
    assert run is not None
    recorder = Recorder(run.pk, run.fence)
    for event in whole_run():
        recorder.store(event)
    for _ in range(2):  # a worker that died before it said so does it again
        assert recorder.keep_profile(CPU, JAVA) == "profile-async-profiler-cpu.collapsed.txt"
    with pytest.raises(ParseError, match="no profile"):
        recorder.keep_profile(CPU, b"nothing of the kind")
    with pytest.raises(FenceError):
        Recorder(run.pk, run.fence - 1).keep_profile(CPU, JAVA)
    stored = run.profiles.get()
    assert (stored.cpu_time_s, stored.requests, stored.samples) == (None, None, 231)
    conclude(run.pk, run.fence, Record.fold(whole_run()))
    stored.refresh_from_db()
    run.refresh_from_db()
    assert stored.requests == 6 * 1000
    assert stored.cpu_time_s == pytest.approx(6 * run.metrics["server_cpu_ratio"])
    assert exact(folded(stored)) == exact(read_profile(JAVA))
    assert bytes(run.artifacts.get(name=stored.file).content or b"") == JAVA


def test_what_is_said_counts_more_than_the_file_and_a_second_one_needs_a_name(make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    said = TakenProfile("go", role="sut", event="samples", cpu_time_s=2.5, requests=100, samples=7, lost_samples=1)
    stored = store_run_profile(run, GO, said)
    assert (stored.name, stored.role, stored.form, stored.event) == ("go-samples", "", "pprof", "samples")
    assert (stored.cost_us, stored.samples, stored.lost_samples) == (25_000.0, 7, 1)
    with pytest.raises(Conflict):
        store_run_profile(run, GO, said)
    store_run_profile(run, JAVA, TakenProfile("async-profiler", role="database", event="wall"))
    waited = profile_named(run, "database-async-profiler-wall")
    assert waited.cpu_time_s is None
    with pytest.raises(NotFound):
        profile_named(run, "cpu")


@pytest.mark.parametrize(
    "event, unit, counts",
    [
        ("", "samples", True),
        ("cpu", "nanoseconds", True),
        ("cpu-clock:u", "events", True),
        ("cycles:P", "events", True),
        ("itimer", "samples", True),
        ("", "bytes", False),
        ("Wall", "samples", False),
        ("alloc_space", "samples", False),
        ("page-faults", "events", False),
        ("LLC-load-misses", "events", False),
        ("context-switches", "events", False),
        ("off-cpu", "nanoseconds", False),
        ("lock:contention_begin", "events", False),
    ],
)
def test_only_what_stands_for_cpu_time_has_a_cost_per_request(event: str, unit: str, counts: bool) -> None:
    stored = RunProfile(event=event, unit=unit, cpu_time_s=1.0, requests=1000)
    assert stored.counts_cpu is counts
    assert stored.cost_us == (1000.0 if counts else None)


REFUSED: list[tuple[bytes, dict[str, Any], str, str]] = [
    (b"\x7fELF", {}, "file", "no profile that is known"),
    (b"FLR\0", {}, "file", "jfr-converter"),
    (b"a;b 1\nc\n", {}, "file", "line 2"),
    (b"a;b 1\n" + b" " * (16 << 20), {}, "file", "at most 16 MB"),
    (JAVA, {"form": "dtrace"}, "form", "Known forms: collapsed"),
    (JAVA, {"name": "No/Slash"}, "name", "lower-case letters"),
    (JAVA, {"window_s": (5.0, 5.0)}, "end_s", "end after it starts"),
    (JAVA, {"cpu_time_s": 0.0}, "cpu_time_s", "above 0"),
    (JAVA, {"requests": 0}, "requests", "at least 1"),
]


@pytest.mark.parametrize("content, more, field, said", REFUSED)
def test_what_is_no_profile_is_refused_before_anything_is_stored(
    make_run: MakeRun, content: bytes, more: dict[str, Any], field: str, said: str
) -> None:
    run = make_run(throughput_rps=1000.0)
    with pytest.raises(RequestError, match=said) as refused:
        store_run_profile(run, content, TakenProfile("async-profiler", **more))
    assert refused.value.field == field
    assert not run.profiles.exists()
    assert not run.artifacts.exists()


def test_profiles_count_as_files_travel_with_their_team_and_go_with_their_run(
    admin: Member, make_run: MakeRun, tmp_path: Path
) -> None:
    run = old(make_run(throughput_rps=1000.0))
    stored = store_run_profile(run, JAVA, CPU)
    size = len(stored.folded) + len(JAVA)
    measure_files()
    admin.team.refresh_from_db()
    assert admin.team.artifact_bytes == size
    assert forecast(admin.team, 90).artifact_bytes == size
    export_team(admin.team, tmp_path / "team")
    there = import_team(tmp_path / "team", slug="moved").team
    moved = RunProfile.objects.get(run__team=there)
    assert exact(folded(moved)) == exact(folded(stored))
    assert (moved.file, moved.start_s, moved.event) == (stored.file, 2.0, "cpu")
    Run.objects.filter(pk=run.pk).delete()
    assert RunProfile.objects.count() == Artifact.objects.count() == 1
