"""The course of the load becomes channels beside those of the monitors."""

from __future__ import annotations

import pytest

from agents.drivers.jmeter.jtl.files import read_jtl_text
from agents.events import FactsCollected, LoadReported, LoadStarted
from agents.record import Record
from experiments.judging.evidence.load_course import began_unix_s, load_points
from tests.agents.recorded import CASES

T0 = 1_795_165_521.0


def record_of(report: dict[str, object], offset_s: float = 0.0) -> Record:
    facts = FactsCollected("driver", "", {}, "/run", "boot", clock_offset_s=offset_s)
    return Record.fold([facts, LoadReported(0, True, 0, "", "", report)])


def test_requests_and_latency_over_time_count_from_the_start_of_measuring() -> None:
    report = read_jtl_text((CASES / "jmeter" / "people.csv").read_text()).to_json()
    points = load_points(record_of(report), T0)
    unit, at_s, values = points["driver", "load.throughput_rps"]
    assert (unit, at_s[:2], sum(values)) == ("requests/s", [0.5, 1.5], 1825)
    assert set(points) == {
        ("driver", f"load.{name}") for name in ("throughput_rps", "errors_per_s", "latency_mean_ms", "active_threads")
    }


def test_what_is_known_of_the_driver_host_s_clock_is_taken_off() -> None:
    report = read_jtl_text((CASES / "jmeter" / "people.csv").read_text()).to_json()
    at_s = load_points(record_of(report, offset_s=100.0), T0)["driver", "load.throughput_rps"][1]
    assert at_s[0] == -99.5


@pytest.mark.parametrize(
    ("started_s", "offset_s", "expected_s"),
    [
        (None, 0.0, T0),
        (T0 + 6.5, 0.0, T0 + 6.5),
        (T0 + 106.5, 100.0, T0 + 6.5),
        (T0 + 3600, 0.0, T0),  # a clock that nobody knows the offset of
        (T0 - 5, 0.0, T0),
    ],
)
def test_measuring_begins_with_the_first_request_where_the_tool_tells_it(
    started_s: float | None, offset_s: float, expected_s: float
) -> None:
    report: dict[str, object] = {} if started_s is None else {"started_ms": started_s * 1000}
    record = record_of(report, offset_s)
    record.add(LoadStarted(0, True, 30, T0))
    assert began_unix_s(record) == pytest.approx(expected_s)


def test_a_tool_that_reports_only_totals_has_no_course() -> None:
    assert load_points(record_of({"requests": 5}), T0) == {}
    assert load_points(Record(), T0) == {}
