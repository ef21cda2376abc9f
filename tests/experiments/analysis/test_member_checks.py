"""Every member of a system can make its run suspect or invalid, and is named for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from experiments.analysis.findings import Finding, GcPauses, HostFigures, LoadFigures
from experiments.analysis.validity import judge_run
from tests.experiments.analysis.test_run_validity import CALM, WRK

MEMBER = HostFigures(
    role="database",
    called="its host",
    steal_ratio=0.0,
    swap_pages=0,
    memory_available_ratio=0.5,
    throttle_count=0,
    sut_unseen_s=0.0,
    unknown={"neighbours": "only a JVM is surely one process", "gc": "it has no collector"},
)
APP = replace(MEMBER, role="app")


def found(check: str, *, load: LoadFigures = WRK, app: dict[str, Any] | None = None, **of_database: Any) -> Finding:
    hosts = replace(
        CALM,
        role="proxy",
        member_uses={"proxy": 0.2, "database": 0.95, "app": 0.4},
        members={"database": replace(MEMBER, **of_database), "app": replace(APP, **(app or {}))},
    )
    return next(one for one in judge_run(load, hosts).findings if one.check == check)


@pytest.mark.parametrize(
    ("figures", "check", "level", "words"),
    [
        ({"steal_ratio": 0.3}, "steal", "invalid", "database: The hypervisor took 30.0 % of the CPU time"),
        ({"swap_pages": 12}, "swap", "invalid", "database: 12 memory pages were swapped during the run."),
        ({"memory_available_ratio": 0.01}, "memory", "warn", "database: Only 1.0 % of its host's memory"),
        ({"throttle_count": 3}, "throttle", "invalid", "database: Its host's CPUs were slowed down 3 times"),
        ({"governor": "powersave"}, "governor", "warn", 'database: The CPU frequency governor was "powersave"'),
        (
            {"neighbours_ratio": 0.4},
            "neighbours",
            "invalid",
            "database: Other processes used 40.0 % of the server's CPUs",
        ),
        ({"gc": GcPauses(9, 20.0, 4000.0, 2)}, "gc", "warn", "database: The JVM stood still for garbage collection"),
        (
            {"sut_unseen_s": 30.0},
            "monitors",
            "warn",
            "database: Of the 30 s window the monitors missed 30 s of its host",
        ),
    ],
)
def test_what_is_wrong_on_the_machine_of_a_member_counts_with_its_role(
    figures: dict[str, Any], check: str, level: str, words: str
) -> None:
    finding = found(check, **figures)
    assert finding.level == level
    assert finding.sentence.startswith(words)
    assert "proxy" not in finding.sentence


def test_evidence_of_members_begins_with_their_role() -> None:
    finding = found("steal", steal_ratio=0.01)
    assert finding.evidence == {"steal_ratio": 0.0, "database_steal_ratio": 0.01, "app_steal_ratio": 0.0}
    assert found("monitors").evidence["database_unseen_s"] == 0.0


def test_the_same_answer_of_several_members_is_said_once() -> None:
    assert found("swap").sentence == "proxy, database and app: No memory page was swapped."
    assert found("swap", swap_pages=None).sentence == "proxy and app: No memory page was swapped."


def test_a_system_is_busy_when_one_of_its_members_is() -> None:
    finding = found("sut_cpu")
    assert (finding.level, finding.sentence) == ("ok", "The busiest member, database, was 95 % busy.")
