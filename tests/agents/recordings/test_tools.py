"""What a run starts to record its hosts: how it is asked for, how long it may last, and that the plan shows it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agents.plan import build_plan
from agents.recordings.base import MARGIN_S, MOST_SAMPLES, Recorder
from agents.recordings.tools import RECORDERS
from agents.spec import RunSpec
from tests.agents.specs import make_spec


def asked(recorders: object) -> RunSpec:
    return make_spec(workload={"recorders": recorders})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([], ()),
        ("", ()),
        ("nmon", ("nmon",)),
        ("nmon, mpstat", ("nmon", "mpstat")),
        (["mpstat", "nmon", "mpstat"], ("mpstat", "nmon")),
    ],
)
def test_recorders_are_a_list_or_names_with_commas(given: object, names: tuple[str, ...]) -> None:
    assert asked(given).workload.recorders == names


@pytest.mark.parametrize("given", ["sar", ["nmon", 1], {"nmon": True}])
def test_what_is_no_recorder_is_refused(given: object) -> None:
    with pytest.raises(ValidationError):
        asked(given)


@pytest.mark.parametrize("recorder", RECORDERS.values(), ids=lambda one: one.name)
@pytest.mark.parametrize(("load_s", "interval_s"), [(1, 1), (1800, 1), (1801, 2), (24 * 3600, 48)])
def test_a_recorder_samples_the_whole_load_and_ends_by_itself(recorder: Recorder, load_s: int, interval_s: int) -> None:
    *_, interval, count = recorder.command(load_s).argv
    assert int(interval) == interval_s
    assert load_s + MARGIN_S <= int(count) * interval_s < load_s + MARGIN_S + interval_s
    assert int(count) <= MOST_SAMPLES + MARGIN_S


def test_the_plan_shows_what_is_recorded_on_each_host_once() -> None:
    items = [item for phase in build_plan(asked("nmon")).phases for item in phase.items if "nmon" in item.title]
    assert [item.host for item in items] == ["sut", "driver"]
    assert ["sut.nmon" in items[0].note, "driver.nmon" in items[1].note] == [True, True]
    assert not any(item.changes for item in items)
