"""The clock of a run is set once and then follows time that passes, whatever becomes of the machine's."""

from __future__ import annotations

import contextvars
from types import SimpleNamespace

import pytest

from agents.base import clock
from agents.base.clock import RunClock, ahead_of_run_s, run_clock_s, set_run_clock
from agents.events import PhaseStarted
from agents.record import Record


class Machine(SimpleNamespace):
    """Stands in for the module `time`: a wall clock that can be set, and a monotonic one."""

    wall_s: float
    passed_s: float

    def time(self) -> float:
        return self.wall_s + self.passed_s

    def monotonic(self) -> float:
        return self.passed_s


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(wall_s=5000.0, passed_s=100.0)
    monkeypatch.setattr(clock, "time", machine)
    return machine


@pytest.mark.parametrize("step_s", [-86400.0, -3600.0, 3600.0, 86400.0])
def test_setting_the_machines_clock_moves_nothing_in_a_run(machine: Machine, step_s: float) -> None:
    def run() -> None:
        set_run_clock(RunClock.read(lambda: 2000.0))
        record = Record.fold([PhaseStarted("measure", run_clock_s())])
        machine.wall_s += step_s
        machine.passed_s += 7.0

        assert run_clock_s() == 2007.0
        assert record.phase_s("measure") == 7.0

    contextvars.copy_context().run(run)


def test_two_workers_with_different_clocks_agree_on_a_runs_times(machine: Machine) -> None:
    """The second one goes on, ten seconds later by the database's clock, with a clock that is a minute behind."""
    began = contextvars.copy_context()
    began.run(set_run_clock, RunClock.read(lambda: 2000.0))
    record = Record.fold([PhaseStarted("measure", began.run(run_clock_s))])

    other = contextvars.copy_context()
    machine.wall_s, machine.passed_s = 4940.0, 77000.0
    other.run(set_run_clock, RunClock.read(lambda: 2010.0))

    assert other.run(record.phase_s, "measure") == 10.0


@pytest.mark.parametrize(("late_s", "ahead_s"), [(0.0, 0.0), (0.03, 0.0), (-0.03, 0.0), (0.2, 0.15), (-0.2, -0.15)])
def test_a_late_answer_of_the_database_is_not_held_against_a_host(
    machine: Machine, late_s: float, ahead_s: float
) -> None:
    """The database took 0.1 s, so its clock is known to 0.05 s: a host 0.03 s off by it may well be right."""

    def run() -> None:
        set_run_clock(RunClock.read(lambda: slow(2000.05)))
        now_s = run_clock_s()
        assert ahead_of_run_s(now_s + late_s, now_s, now_s) == pytest.approx(ahead_s)

    def slow(unix_s: float) -> float:
        machine.passed_s += 0.1
        return unix_s

    contextvars.copy_context().run(run)


def test_without_a_clock_of_the_run_it_is_the_machines(machine: Machine) -> None:
    assert contextvars.Context().run(run_clock_s) == machine.time()
