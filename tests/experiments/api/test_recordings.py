"""Recordings of nmon, mpstat and top beside the samples of a run."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models import Artifact, AuditEntry, Member, Run, SampleSeries
from frontend.charts.samples import groups_of
from tests.agents.recorded import CASES
from tests.experiments.api.conftest import ApiClient, MakeApi

NMON = (CASES / "recordings" / "nmon-loaded.nmon").read_text()
TOP = (CASES / "recordings" / "top-threads.txt").read_text()
REPORT = (CASES / "wrk" / "basic.txt").read_text()


@pytest.fixture
def run(api: ApiClient) -> Run:
    """An imported run that measured two seconds after the first sample of the nmon file."""
    body = {"kind": "wrk", "text": REPORT, "measured_at": "2026-11-20T09:07:22Z"}
    assert api.post("/imports", body).status_code == 201
    return Run.objects.get()


def body(**changes: Any) -> dict[str, Any]:
    return {"role": "sut", "kind": "nmon", "text": NMON, **changes}


def test_an_nmon_file_becomes_channels_on_the_runs_clock(api: ApiClient, run: Run) -> None:
    answer = api.post("/runs/1/recordings", body())
    assert answer.status_code == 201, answer.content
    assert (answer.json()["first_s"], answer.json()["last_s"]) == (-2.0, 12.0)
    assert "nmon.cpu.busy_ratio" in answer.json()["channels"]
    samples = api.get("/runs/1/samples?channel=nmon.cpu.busy_ratio").json()
    assert samples[0]["at_s"][:3] == [-2.0, 0.0, 2.0]
    assert samples[0]["values"][0] == pytest.approx(0.647)
    assert Artifact.objects.get(name="sut-nmon.txt").content == NMON.encode()
    assert AuditEntry.objects.filter(action="run.recording").count() == 1
    assert "recorded" in groups_of(run)


@pytest.mark.parametrize(
    ("online", "second", "says"),
    [
        ((0, 3), "nmon.cpu.3.user_ratio", False),
        ((0, 1), "nmon.cpu.1.user_ratio", False),
        ((), "nmon.cpu.1.user_ratio", True),
    ],
)
def test_cpus_of_nmon_get_the_numbers_of_the_kernel_or_a_note(
    api: ApiClient, run: Run, online: tuple[int, ...], second: str, says: bool
) -> None:
    for cpu in online:
        SampleSeries.objects.create(
            run=run, role="sut", channel=f"cpu.{cpu}.busy_ratio", unit="ratio", at_s=[0.0], values=[0.5]
        )
    answer = api.post("/runs/1/recordings", body()).json()
    assert second in answer["channels"]
    assert any("nmon numbers the CPUs" in note for note in answer["notes"]) is says


def test_another_recording_of_the_same_tool_and_host_replaces_the_first(api: ApiClient, run: Run) -> None:
    api.post("/runs/1/recordings", body())
    again = api.post("/runs/1/recordings", body(started_at="2026-11-20T10:07:22+01:00"))
    assert again.json()["first_s"] == 0.0
    assert api.post("/runs/1/recordings", body(role="driver")).status_code == 201
    assert SampleSeries.objects.filter(channel="nmon.cpu.busy_ratio").count() == 2


def test_top_needs_the_time_of_its_first_sample(api: ApiClient, run: Run) -> None:
    answer = api.post("/runs/1/recordings", body(kind="top", text=TOP))
    assert (answer.status_code, answer.json()["field"]) == (422, "started_at")
    with_time = api.post("/runs/1/recordings", body(kind="top", text=TOP, started_at="2026-11-20T09:07:24Z"))
    assert with_time.status_code == 201
    assert "one frame only" in with_time.json()["notes"][0]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kind": "sar"}, "kind"),
        ({"text": "CPU"}, "text"),
        ({"started_at": "2026-11-20T06:07:20Z"}, "started_at"),
        ({"started_at": "2026-11-20T09:07:20"}, "started_at"),
        ({"started_at": "9999-12-31T23:59:59Z"}, "started_at"),
        ({"started_at": "9999-12-31T23:59:59-23:59"}, "started_at"),
        ({"started_at": "0001-01-01T00:00:00+23:59"}, "started_at"),
        ({"role": "both"}, "role"),
    ],
)
def test_what_cannot_belong_to_the_run_is_not_stored(
    api: ApiClient, run: Run, changes: dict[str, Any], field: str
) -> None:
    answer = api.post("/runs/1/recordings", body(**changes))
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content
    assert not SampleSeries.objects.exists()


def test_another_teams_run_does_not_exist(run: Run, other_admin: Member, make_api: MakeApi) -> None:
    assert make_api(other_admin).post("/runs/1/recordings", body()).status_code == 404


def test_it_needs_the_scope_to_launch(admin: Member, run: Run, make_api: MakeApi) -> None:
    assert make_api(admin, "read").post("/runs/1/recordings", body()).status_code == 403
