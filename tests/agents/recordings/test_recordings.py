"""Files of nmon, mpstat and top: the figures of the recorded cases, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest

from agents.base.errors import ParseError
from agents.recordings import RECORDINGS, read_recording
from agents.recordings.base import Recording
from agents.recordings.mpstat import AS_MONTH_FIRST
from agents.recordings.top import ONE_FRAME
from tests.agents.mutations import mutate
from tests.properties import HealthCheck, given, settings, st

FOLDER = Path(__file__).parents[1] / "cases" / "recordings"
TEXTS = {path.stem: path.read_text() for path in sorted(FOLDER.iterdir()) if not path.name.endswith(".expected.json")}
NAMES = list(TEXTS)


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.expected.json").read_text())["expected"]
    return found


def recording(name: str) -> Recording:
    return read_recording(name.partition("-")[0], TEXTS[name])


def mean_pct(found: Recording, channel: str) -> float:
    return 100 * fmean(found.channels[channel].values)


def test_every_kind_of_recording_has_a_case() -> None:
    assert {name.partition("-")[0] for name in NAMES} == set(RECORDINGS)


def test_an_nmon_file_gives_the_means_that_it_holds() -> None:
    found, wanted = recording("nmon-loaded"), expected("nmon-loaded")
    assert found.host == wanted["host"]
    assert found.started_at == datetime(2026, 11, 20, 9, 7, 20, tzinfo=UTC)
    line = found.channels["cpu.busy_ratio"]
    assert len(line.values) == wanted["snapshots"]
    assert line.at_s == tuple(float(2 * at) for at in range(8))
    assert mean_pct(found, "cpu.busy_ratio") == pytest.approx(wanted["cpu_busy_mean_pct"], abs=0.01)
    for cpu, prefix in (("CPU001", "cpu.0"), ("CPU002", "cpu.1"), ("CPU_ALL", "cpu")):
        for name, channel in (("user", "user"), ("sys", "system"), ("wait", "iowait"), ("steal", "steal")):
            mean = mean_pct(found, f"{prefix}.{channel}_ratio")
            assert mean == pytest.approx(wanted["cpu"][cpu][name], abs=1e-3)
    assert found.channels["network.data0.tx_bytes_per_s"].values[0] == pytest.approx(100.5 * 1024)
    assert found.channels["memory.used_bytes"].values[0] == pytest.approx((24105.6 - 15385.7 - 5115.9 - 56.7) * 2**20)


def test_a_sorted_nmon_file_is_the_same_recording() -> None:
    text = "\n".join(sorted(TEXTS["nmon-loaded"].splitlines()))
    assert read_recording("nmon", text) == recording("nmon-loaded")


@pytest.mark.parametrize("name", ["mpstat-loaded", "mpstat-text"])
def test_the_text_of_mpstat_gives_the_means_that_it_prints(name: str) -> None:
    found, wanted = recording(name), expected(name)
    assert found.host == wanted["host"]
    assert found.notes == (AS_MONTH_FIRST,)
    assert len(found.channels["cpu.busy_ratio"].values) == wanted["intervals"]
    for cpu, prefix in (("all", "cpu"), ("0", "cpu.0"), ("1", "cpu.1")):
        average = wanted["average"][cpu]
        assert mean_pct(found, f"{prefix}.user_ratio") == pytest.approx(average["usr"] + average["nice"], abs=0.1)
        assert mean_pct(found, f"{prefix}.interrupt_ratio") == pytest.approx(average["irq"] + average["soft"], abs=0.1)
        assert mean_pct(found, f"{prefix}.iowait_ratio") == pytest.approx(average["iowait"], abs=0.1)


def test_the_json_of_mpstat_gives_each_interval() -> None:
    found, wanted = recording("mpstat-json"), expected("mpstat-json")
    for at, sample in enumerate(wanted["samples"]):
        for cpu, prefix in (("all", "cpu"), ("0", "cpu.0"), ("1", "cpu.1")):
            assert found.channels[f"{prefix}.user_ratio"].values[at] == pytest.approx(sample[cpu]["usr"] / 100)
            assert found.channels[f"{prefix}.system_ratio"].values[at] == pytest.approx(sample[cpu]["sys"] / 100)
    assert found.channels["cpu.busy_ratio"].at_s == (0.0, 1.0)


@pytest.mark.parametrize("name", ["top-tasks", "top-threads", "top-published"])
def test_a_frame_of_top_gives_its_rows_by_name(name: str) -> None:
    found, wanted = recording(name), expected(name)
    assert found.notes == (ONE_FRAME,)
    kind = "threads" if wanted["kind"] == "threads" else "processes"
    for command, sums in wanted["by_command"].items():
        assert found.channels[f"{kind}.{command}.cpu_ratio"].values[0] == pytest.approx(sums["cpu_pct_sum"] / 100)
        assert found.channels[f"{kind}.{command}.count"].values == (sums["threads"],)
    memory = found.channels["memory.used_bytes"].values[0] + found.channels["memory.available_bytes"].values[0]
    assert memory == pytest.approx(wanted["mem_total_mib"] * 2**20)


def test_the_first_of_several_frames_of_top_is_left_out() -> None:
    first = TEXTS["top-threads"]
    later = first.replace("top - 08:57:48", "top - 08:57:50").replace(
        "99.9   1.5   0:38.62 java", "50.0 1.5 0:39.62 java"
    )
    last = later.replace("top - 08:57:50", "top - 00:00:10")
    found = read_recording("top", first + later + last)
    assert found.notes == ()
    assert found.channels["threads.java.cpu_ratio"].values == (0.5, 0.5)
    assert found.channels["threads.java.cpu_ratio"].at_s == (0.0, 54_140.0)


def test_a_table_of_top_without_the_column_of_the_cpu_is_no_table_of_rows() -> None:
    whole = TEXTS["top-tasks"]
    found = read_recording("top", whole.replace(" %CPU ", " 9%CPU "))
    assert set(found.channels) == {
        name for name in recording("top-tasks").channels if name.startswith(("cpu.", "memory."))
    }


def test_mpstat_of_another_locale_and_over_midnight_is_read() -> None:
    text = (
        "Linux 6.1.0 (db-1) \t2026-11-20 \t_aarch64_\t(1 CPU)\n\n"
        "11:59:58 PM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n"
        "11:59:59 PM  all    10,00    0,00    5,00    0,00    0,00    1,00    0,00    2,00    0,00   82,00\n"
        "12:00:01 AM  all    20,00    0,00    5,00    0,00    0,00    1,00    0,00    2,00    0,00   72,00\n"
    )
    found = read_recording("mpstat", text)
    assert found.channels["cpu.user_ratio"].values == (0.12, 0.22)
    assert found.channels["cpu.user_ratio"].at_s == (0.0, 2.0)
    assert found.started_at == datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC)
    assert found.notes == ()


def test_what_nmon_could_not_measure_is_left_out() -> None:
    text = (
        TEXTS["nmon-loaded"].replace("CPU_ALL,T0001,56.9,7.8", "CPU_ALL,T0001,nan,7.8").replace("DISKBUSY", "DISKX", 1)
    )
    found = read_recording("nmon", text)
    assert len(found.channels["cpu.busy_ratio"].values) == 7
    assert len(found.channels["cpu.system_ratio"].values) == 8
    assert all(value >= 0 for line in found.channels.values() for value in line.values)


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        ("nmon", "", "no nmon file"),
        ("nmon", "AAA,progname,nmon\n", "no snapshot"),
        ("nmon", "AAA,progname,nmon\nZZZZ,T0001,9 o'clock\n", "line 2: expected a time"),
        ("nmon", "AAA,progname,nmon\nZZZZ,T0001,09:00:00,31-FEB-2026\n", "line 2: expected a time"),
        ("nmon", "AAA,progname,nmon\nZZZZ,T0001,23:59:61,31-DEC-9999\n", "line 2: expected a time"),
        ("mpstat", "Linux", "no output of mpstat"),
        ("mpstat", "Linux 6.1 (a) 2026-11-20 _x86_64_ (2 CPU)\n", "no interval"),
        ("mpstat", '{"sysstat": {"hosts": []}}', "of 0 hosts"),
        ("mpstat", '{"x": 1}', "should be an object"),
        ("top", "PID USER\n", "no output of top"),
        ("sar", "", "no reader for recordings of 'sar'"),
    ],
)
def test_what_is_no_recording_is_refused(kind: str, text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        read_recording(kind, text)


@pytest.mark.parametrize("kind", RECORDINGS)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_a_mutated_recording_is_read_or_refused(kind: str, random: Random) -> None:
    texts = [text for name, text in TEXTS.items() if name.startswith(kind)]
    try:
        found = read_recording(kind, mutate(random, random.choice(texts), texts))
    except ParseError:
        return
    for line in found.channels.values():
        assert len(line.at_s) == len(line.values)
        assert all(value >= 0 for value in line.values)
