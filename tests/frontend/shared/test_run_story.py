"""A run's events as the page tells them."""

from __future__ import annotations

from agents.events import Failed, PhaseFinished, PhaseStarted, Restored, StepIntended, StepReverted
from frontend.shared.run_story import tell
from tests.frontend.conftest import EVENTS


def test_phases_are_done_now_or_still_to_do() -> None:
    story = tell([PhaseStarted("connect"), PhaseFinished("connect", 0.5), PhaseStarted("facts")], live=True)

    assert [(p.label, p.state, p.duration_s) for p in story.phases[:3]] == [
        ("Connect", "done", 0.5),
        ("Facts", "now", None),
        ("Snapshot", "todo", None),
    ]


def test_a_phase_that_was_never_finished_is_a_failure_once_the_run_is_over() -> None:
    story = tell([PhaseStarted("connect")], live=False)

    assert story.phases[0].state == "failed"


def test_the_failed_phase_is_named() -> None:
    story = tell([PhaseStarted("start"), Failed("start", "No answer."), PhaseFinished("start", 60.0)], live=False)

    assert story.failed_phase == "Start server"
    assert [p.state for p in story.phases if p.label == "Start server"] == ["failed"]


def test_the_journal_has_a_row_per_setting_with_its_result() -> None:
    story = tell(EVENTS, live=False)

    assert [(r.setting, r.before, r.effective, r.result, r.reverted) for r in story.journal] == [
        ("net.core.somaxconn", "4096", "65535", "applied", True),
        ("net.ipv4.tcp_tw_recycle", None, None, "unsupported", True),
    ]
    assert (story.measure_from_unix_s, story.measure_for_s, story.differences) == (1000.0, 10, ())


def test_a_step_that_was_never_read_back_is_in_the_journal_with_what_was_before() -> None:
    intended = StepIntended(0, "sysctl: 1 key", {"vm.swappiness": "60"}, ("sysctl ...",))

    story = tell([intended, StepReverted(0), Restored({"sut": ("vm.swappiness is 10, was 60",)})], live=False)

    assert [(r.setting, r.before, r.effective, r.result) for r in story.journal] == [("vm.swappiness", "60", None, "")]
    assert story.differences == ("vm.swappiness is 10, was 60",)
