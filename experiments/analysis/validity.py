"""Whether one run may enter a comparison, with a sentence and the evidence for each check (docs/validity.md)."""

from __future__ import annotations

from dataclasses import replace

from experiments.analysis.findings import (
    DEFAULT_THRESHOLDS,
    Course,
    Finding,
    HostFigures,
    LoadFigures,
    RunValidity,
    State,
    Thresholds,
)
from experiments.analysis.host_checks import HOST_CHECKS
from experiments.analysis.load_checks import LOAD_CHECKS, report_is_usable
from experiments.analysis.machine_checks import MACHINE_CHECKS
from experiments.analysis.member_checks import of_all_machines
from experiments.analysis.steady_state import load_was_steady
from experiments.analysis.thresholds import LIMITS_OF

__all__ = ["Course", "Finding", "HostFigures", "LoadFigures", "RunValidity", "Thresholds", "judge_run"]

CYCLES = 2
"""A step of the course holds at least so many turns of each connection: their answers may come all at once."""

_NO_HOSTS = Finding(
    "hosts",
    "warn",
    "Only the tool's report is known: its exit status and the state of the hosts were not seen.",
    {},
    "unknown is never success",
)


def judge_run(
    load: LoadFigures,
    hosts: HostFigures | None = None,
    course: Course | None = None,
    *,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> RunValidity:
    """Apply every check that the known figures allow; `course` is the load over time.

    `hosts` None (an imported report) makes the run suspect at best, because nobody saw how the tool ended.
    """
    made = [report_is_usable(load, thresholds), *(check(load, thresholds) for check in LOAD_CHECKS)]
    if hosts is not None or course is not None:
        made.append(load_was_steady(course, load.window_s, thresholds, least_step_s=CYCLES * load.cycle_s))
    if hosts is None:
        made.append(_NO_HOSTS)
    else:
        made += [of_all_machines(check, hosts, load, thresholds) for check in (*HOST_CHECKS, *MACHINE_CHECKS)]
    findings = tuple(_with_limits(finding, thresholds) for finding in made if finding is not None)
    state: State = "valid"
    if any(f.level == "invalid" for f in findings):
        state = "invalid"
    elif any(f.level == "warn" for f in findings):
        state = "suspect"
    return RunValidity(state, findings, hides_latency=_hides_latency(load, thresholds))


def _with_limits(finding: Finding, thresholds: Thresholds) -> Finding:
    return replace(finding, thresholds={name: getattr(thresholds, name) for name in LIMITS_OF[finding.check]})


def _hides_latency(load: LoadFigures, thresholds: Thresholds) -> bool:
    """Latency of an overloaded open loop is backlog; that of some tools leaves out what came after their timeout."""
    if load.habits.omits_late_answers and load.errors_timeout:
        return True
    if load.hides_unknown_backlog:
        return True
    if load.load_model != "open" or not load.offered_rate_rps or load.throughput_rps is None:
        return False
    return load.throughput_rps < thresholds.saturated_below_ratio * load.offered_rate_rps
