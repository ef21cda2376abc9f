"""Events become rows: numbered without gaps, fenced, and readable as the same record again."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agents import events as e
from agents.base.errors import FenceError
from agents.record import Record
from experiments.asking.launching.cancelling import cancel_run
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import ConfigSnapshot, HardwareProfile, Host, HostProfile, Member, Run
from experiments.running.executing.recorder import Recorder
from experiments.running.queue.dispatch import claim_next
from tests.experiments.finished import FACTS, SETTINGS, finish_next, whole_run


@pytest.fixture
def run(admin: Member, stock: dict[str, Any]) -> Run:
    launch_run(admin, Choice(**stock))
    claimed = claim_next("worker")
    assert claimed is not None
    return claimed


@pytest.fixture
def recorder(run: Run) -> Recorder:
    return Recorder(run.pk, run.fence)


def test_what_is_stored_folds_to_the_same_record(run: Run, recorder: Recorder) -> None:
    found = whole_run()
    for event in found:
        recorder.store(event)
    assert recorder.record() == Record.fold(found)
    assert list(run.events.order_by("seq").values_list("seq", flat=True)) == list(range(1, len(found) + 1))
    assert set(run.events.values_list("fence", flat=True)) == {run.fence}


@pytest.mark.parametrize(
    "phase, state",
    [
        ("connect", "preparing"),
        ("facts", "preparing"),
        ("snapshot", "preparing"),
        ("tune", "preparing"),
        ("start", "preparing"),
        ("warm_up", "warming_up"),
        ("measure", "measuring"),
        ("collect", "collecting"),
        ("stop", "restoring"),
        ("restore", "restoring"),
        ("verify", "restoring"),
    ],
)
def test_every_phase_shows_in_the_run(run: Run, recorder: Recorder, phase: e.PhaseName, state: str) -> None:
    recorder.store(e.PhaseStarted(phase))
    run.refresh_from_db()
    assert run.state == state


def test_facts_make_profiles_and_the_fingerprint(run: Run, recorder: Recorder) -> None:
    for _ in range(2):  # a worker that died before it stored the end of the phase looks again
        recorder.store(e.FactsCollected("sut", "a" * 64, FACTS, "/sut", "boot", 0.0, "11.0.9"))
        recorder.store(e.FactsCollected("driver", "b" * 64, {}, "/driver", "boot", 0.0, "4.2.0"))
    run.refresh_from_db()
    assert (run.sut_profile.facts, len(run.fingerprint)) == (FACTS, 64) if run.sut_profile else False
    assert HardwareProfile.objects.count() == 2
    assert HostProfile.objects.count() == 2
    sut = Host.objects.get(name="sut-1")
    assert sut.profile == run.sut_profile
    assert sut.last_seen_at is not None


def test_a_host_that_went_back_to_an_earlier_profile_can_be_measured(run: Run, recorder: Recorder) -> None:
    for digest in ("a" * 64, "c" * 64, "a" * 64, "a" * 64):  # a test kernel in between
        recorder.store(e.FactsCollected("sut", digest, FACTS, "/sut", "boot", 0.0, "11.0.9"))
    history = Host.objects.get(name="sut-1").profile_history.values_list("profile__digest", flat=True)
    assert [digest[0] for digest in history] == ["a", "c", "a"]


def test_equal_configurations_are_stored_once(admin: Member, stock: dict[str, Any]) -> None:
    for _ in range(2):
        launch_run(admin, Choice(**stock))
    first, second = finish_next(), finish_next()
    assert first.config == second.config == ConfigSnapshot.objects.get()
    assert first.config is not None
    assert first.config.values == SETTINGS


def test_a_failure_shows_before_the_run_is_over(run: Run, recorder: Recorder) -> None:
    recorder.store(e.Failed("tune", "The disk is full.", "Make room.", cancelled=False))
    run.refresh_from_db()
    assert (run.outcome, run.failure, run.failure_hint) == ("failed", "The disk is full.", "Make room.")


def test_the_heartbeat_holds_the_lease_and_brings_the_wish_to_cancel(
    admin: Member, run: Run, recorder: Recorder
) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=None)
    assert recorder.beat() is False
    run.refresh_from_db()
    assert run.lease_until is not None
    cancel_run(admin, run)
    assert recorder.beat() is True


def test_text_that_the_database_does_not_take_is_stored_all_the_same(run: Run, recorder: Recorder) -> None:
    report = {"latency_mean_ms": math.nan, "list": [math.inf, "a\0b"], "n\0": 1}
    recorder.store(e.LoadReported(0, True, 0, "\0binary\0", "00", report))
    recorder.store(e.Logged("server", ("nul \0 here", "\ud7ff\U0001f40e")))
    payload = run.events.get(kind="load_reported").payload
    assert payload["output"] == "\ufffdbinary\ufffd"
    assert payload["report"] == {"latency_mean_ms": None, "list": [None, "a\ufffdb"], "n\ufffd": 1}
    assert run.events.get(kind="logged").payload["lines"] == ["nul \ufffd here", "\ud7ff\U0001f40e"]


def test_a_file_that_is_to_be_put_back_is_stored_to_the_letter(run: Run, recorder: Recorder) -> None:
    from agents.steps.base.remote_file import decode_content, encode_content

    for data in (b"", b"plain\n", b"\xff\xfe", b"nul\0", b"base64:AAAA", "ünïcode\r\n".encode()):
        recorder.store(e.StepIntended(1, "t", {"content": encode_content(data)}, ()))
        content = recorder.record().intended[1].before["content"]
        assert content is not None
        assert decode_content(content) == data


def test_only_the_holder_of_the_fence_writes(run: Run, recorder: Recorder) -> None:
    stale = Recorder(run.pk, run.fence - 1)
    for action in (lambda: stale.store(e.PhaseStarted("tune")), stale.beat):
        with pytest.raises(FenceError):
            action()
    assert not run.events.exists()
    recorder.store(e.PhaseStarted("tune"))
    assert run.events.count() == 1


def test_a_file_is_kept_once_under_its_name_and_only_by_the_holder_of_the_fence(run: Run, recorder: Recorder) -> None:
    recorder.keep_file("1-measure-results.jtl.gz", b"half", "application/gzip")
    recorder.keep_file("1-measure-results.jtl.gz", b"whole", "application/gzip")
    kept = run.artifacts.get()
    assert (kept.name, bytes(kept.content or b""), kept.media_type) == (
        "1-measure-results.jtl.gz",
        b"whole",
        "application/gzip",
    )
    with pytest.raises(FenceError):
        Recorder(run.pk, run.fence - 1).keep_file("x", b"", "text/plain")
    assert run.artifacts.count() == 1


def test_what_people_read_of_a_run_holds_no_secret(run: Run, recorder: Recorder) -> None:
    key = ("-----BEGIN PRIVATE KEY-----", "aHVudGVyMjI=", "-----END PRIVATE KEY-----")
    recorder.store(e.Logged("server", ("password=hunter22", key[0])))
    recorder.store(e.Logged("driver", ("no part of it",)))
    recorder.store(e.Logged("server", (*key[1:], "Server started")))
    recorder.store(e.LoadReported(0, True, 0, "wrk -H 'Authorization: Bearer hunter22hunter22'", "", {}))
    recorder.store(e.Failed("measure", "--password hunter22", "api_key=hunter22"))
    recorder.keep_file("plain.txt", b"\xff password=hunter22", "text/plain; charset=utf-8")
    recorder.keep_file("packed.gz", b"\xff password=hunter22", "application/gzip")

    stored = str(list(run.events.order_by("seq").values_list("payload", flat=True)))
    run.refresh_from_db()
    assert "hunter22" not in stored + run.failure + run.failure_hint
    assert "aHVudGVyMjI" not in stored
    assert "no part of it" in stored
    assert "Server started" in stored
    assert bytes(run.artifacts.get(name="plain.txt").content or b"") == b"\xff password=(hidden)"
    packed = run.artifacts.get(name="packed.gz")  # whoever packs it hides
    assert bytes(packed.content or b"") == b"\xff password=hunter22"
