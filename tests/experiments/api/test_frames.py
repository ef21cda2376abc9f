"""Whole data as Parquet: every run with all that it has, every point, and nothing of another team."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from experiments.models import Member, Run, SampleSeries
from experiments.telling.frames import runs as frames
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.api.test_auth import BODIES, NAMES

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def table(api: ApiClient, path: str) -> pl.DataFrame:
    answer = api.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/vnd.apache.parquet")
    return pl.read_parquet(b"".join(answer.streaming_content))  # type: ignore[attr-defined]


@pytest.fixture
def three(api: ApiClient, stock: dict[str, Any]) -> None:
    """Runs with different figures, labels and parameters; the second hides its latency, the third has nothing."""
    for number, labels in enumerate(({"commit": "a1"}, {"commit": "b2", "branch": "main"}, {}), start=1):
        api.post("/runs", {**NAMES, "labels": labels, "parameters": {"nofile": 4096} if number == 2 else {}})
        metrics = [{"throughput_rps": 100.0, "latency_p99_ms": 5.5}, {"latency_p99_ms": 9, "cart_age_ms": 3}, {}]
        Run.objects.filter(number=number).update(metrics=metrics[number - 1], hides_latency=number == 2)
    Run.objects.filter(number=1).update(state="finished", outcome="succeeded", validity="valid", finished_at=DAY)
    Run.objects.filter(number=1).update(fingerprint="f" * 64, tags=["nightly", 'with "marks", and more'])


def test_every_run_comes_with_each_figure_label_and_parameter_that_any_has(
    api: ApiClient, three: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "AT_ONCE", 1)  # what only the last part knows is a column of all
    found = table(api, "/runs.parquet")
    assert found.columns == [*frames.COLUMNS, "cart_age_ms", "label.branch", "label.commit", "param.nofile"]
    assert found["number"].to_list() == [1, 2, 3]
    assert found["latency_p99_ms"].to_list() == [5.5, None, None]
    assert found["cart_age_ms"].to_list() == [None, 3.0, None]
    assert found["label.commit"].to_list() == ["a1", "b2", None]
    assert found["param.nofile"].to_list() == ["65535", "4096", "65535"]
    assert found["drivers"].to_list() == [["driver-1"]] * 3
    assert found["finished_at"].to_list() == [DAY, None, None]
    listed = api.get("/runs?sort=number").json()["items"]
    for row, run in zip(found.to_dicts(), listed, strict=False):
        assert row["recipe"] == run["recipe"]["name"]
        assert row["recipe_version"] == run["recipe"]["version"]
        same = (
            "state",
            "outcome",
            "validity",
            "restore",
            "origin",
            "sut",
            "tags",
            "priority",
            "created_by",
            "archived",
        )
        assert {name: row[name] for name in same} == {name: run[name] for name in same}


@pytest.mark.parametrize(
    "query, numbers",
    [("?label=commit=b2", [2]), ("?number__gte=2", [2, 3]), ("?state=finished", [1]), ("?recipe=other", [])],
)
def test_the_filters_are_those_of_the_list(api: ApiClient, three: None, query: str, numbers: list[int]) -> None:
    found = table(api, f"/runs.parquet{query}")
    assert found["number"].to_list() == numbers
    assert set(frames.COLUMNS) <= set(found.columns)


def test_a_history_and_an_experiment_are_tables_of_their_runs(api: ApiClient, three: None) -> None:
    series = f"/series/{'f' * 64}.parquet"
    assert table(api, series)["number"].to_list() == [1]
    assert table(api, f"{series}?recipe=other").height == 0
    assert table(api, f"{series}?until=2025-12-31").height == 0
    made = api.post("/experiments", BODIES["create_experiment"]).json()["id"]
    api.post(f"/experiments/{made}/launch")
    found = table(api, f"/experiments/{made}.parquet")
    assert set(found["variant"]) == {"a"}
    assert found.height == Run.objects.filter(experiment=made).count() > 0


def test_profiled_twins_are_marked_in_all_tables_and_left_out_of_an_experiment_unless_asked_for(
    api: ApiClient, stock: dict[str, Any]
) -> None:
    made = api.post("/experiments", {**BODIES["create_experiment"], "profilers": ["perf"]}).json()["id"]
    api.post(f"/experiments/{made}/launch")
    marks = dict(Run.objects.order_by("number").values_list("number", "profiled"))
    plain = [number for number, profiled in marks.items() if not profiled]
    assert 0 < len(plain) < len(marks)
    alone = table(api, f"/experiments/{made}.parquet")
    assert (alone["number"].to_list(), any(alone["profiled"])) == (plain, False)
    for path in (f"/experiments/{made}.parquet?profiled=true", "/runs.parquet"):
        found = table(api, path)
        assert dict(zip(found["number"], found["profiled"], strict=True)) == marks, path
    lines = csv.DictReader(api.get("/runs/csv").getvalue().decode().splitlines())
    assert {int(line["number"]): line["profiled"] == "True" for line in lines} == marks


@pytest.fixture
def wide(admin: Member, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Twelve runs with figures, a label and a parameter in common, and four of each kind that no other run has.

    The last one hides its latency.
    """
    monkeypatch.setattr(frames, "MOST_KEYS", 3)
    monkeypatch.setattr(frames, "CELLS_AT_ONCE", 4 * (len(frames.COLUMNS) + 10))
    rare = {12: {"errors_total": 7}}
    return Run.objects.bulk_create(
        Run(
            team=admin.team,
            number=number,
            labels={"branch": "main", **{f"l{number}-{place}": "v" for place in range(4)}},
            parameters={"heap": number, **{f"p{number}-{place}": "w" for place in range(4)}},
            metrics={
                "throughput_rps": 1.5,
                "latency_p99_ms": 9,
                **rare.get(number, {}),
                **{f"age{number}_{place}_ms": 2 for place in range(4)},
            },
            hides_latency=number == 12,
        )
        for number in range(1, 13)
    )


def test_any_number_of_keys_makes_few_columns_and_small_parts_and_loses_nothing(
    api: ApiClient, wide: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[tuple[int, int]] = []

    def noting(rows: frames._Rows) -> Any:
        made = part(rows)
        parts.append(made.shape)
        return made

    part = frames._part
    monkeypatch.setattr(frames, "_part", noting)
    found = table(api, "/runs.parquet")
    assert [rows for rows, _ in parts] == [4, 4, 4]
    assert all(rows * columns <= frames.CELLS_AT_ONCE for rows, columns in parts)
    wholes = ["labels_json", "metrics_json", "parameters_json"]
    of_kinds = [name for name in found.columns if name not in (*frames.COLUMNS, *wholes)]
    assert [re.sub("[0-9].*", "", name) for name in of_kinds] == [
        *("age", "label.branch", "label.l", "label.l", "param.heap", "param.p", "param.p"),
    ]
    assert found["label.branch"].to_list() == ["main"] * 12
    assert found["param.heap"].to_list() == [str(number) for number in range(1, 13)]
    assert found["throughput_rps"].to_list() == [1.5] * 12
    assert found["latency_p99_ms"].to_list() == [9.0] * 11 + [None]
    assert found["errors_total"].to_list() == [None] * 11 + [7.0]
    for run, row in zip(wide, found.to_dicts(), strict=True):
        shown = {name: value for name, value in run.metrics.items() if run.number < 12 or name != "latency_p99_ms"}
        whole = [json.loads(row[name]) for name in wholes]
        assert whole == [run.labels, shown, run.parameters]


def test_samples_are_not_thinned(api: ApiClient, three: None) -> None:
    run = Run.objects.get(number=1)
    at_s = [float(second) for second in range(5000)]
    for channel in ("cpu.busy_ratio", "memory.free_bytes"):
        SampleSeries.objects.create(run=run, role="sut", channel=channel, unit="x", at_s=at_s, values=at_s)
    assert len(api.get("/runs/1/samples").json()[0]["at_s"]) < 5000
    found = table(api, "/runs/1/samples.parquet?channel=cpu.busy_ratio")
    assert (found.height, found.columns) == (5000, ["role", "channel", "unit", "at_s", "value"])
    assert found["value"].to_list() == at_s
    assert table(api, "/runs/1/samples.parquet").height == 10_000
    assert table(api, "/runs/2/samples.parquet").height == 0


def test_another_team_finds_nothing(
    api: ApiClient, three: None, make_api: MakeApi, other_admin: Member, admin: Member
) -> None:
    stranger = make_api(other_admin, "read")
    assert table(stranger, "/runs.parquet").height == 0
    assert table(stranger, f"/series/{'f' * 64}.parquet").height == 0
    made = api.post("/experiments", BODIES["create_experiment"]).json()["id"]
    for path in ("/runs/1/samples.parquet", f"/experiments/{made}.parquet"):
        assert stranger.get(path).status_code == 404
    assert make_api(admin, "launch").get("/runs.parquet").status_code == 403


def test_a_run_in_the_trash_is_in_no_table(api: ApiClient, three: None) -> None:
    api.post("/trash", {"runs": [1]})
    assert table(api, "/runs.parquet")["number"].to_list() == [2, 3]
    assert table(api, f"/series/{'f' * 64}.parquet").height == 0
