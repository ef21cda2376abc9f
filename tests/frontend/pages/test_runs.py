"""The list of runs: its URL is the view, and it costs the same however many runs there are."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from experiments.models import Experiment, Member, Run, StoredVerdict, Variant
from experiments.registry.hosts.driver_sets import driver_set
from tests.experiments.conftest import admin, make_member, stock, team
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "stock", "team"]


def add_runs(member: Member, stock: dict[str, Any], count: int, **more: Any) -> list[Run]:
    first = Run.objects.count() + 1
    names = ("application", "recipe", "workload", "sut")
    values = {
        "state": "finished",
        "outcome": "succeeded",
        "validity": "valid",
        "throughput_rps": 1000.0,
        "latency_p99_ms": 4.5,
        "errors_total": 0,
        "metrics": {"throughput_rps": 1000.0, "latency_p99_ms": 4.5},
        "created_by_id": member.user_id,
        **{name: stock[name] for name in names},
        "drivers": driver_set(stock["drivers"]),
        **more,
    }
    return Run.objects.bulk_create(Run(team=member.team, number=first + i, **values) for i in range(count))


def queries_of(client: Any, url: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return len(captured)


@pytest.mark.parametrize("query", ["", "?query=tomcat&sort=-throughput_rps&columns=verdict,what,labels,by"])
def test_the_number_of_queries_does_not_grow_with_the_runs(admin: Member, stock: dict[str, Any], query: str) -> None:
    client, url = signed_in(admin), address("runs", admin.team) + query
    experiment = Experiment.objects.create(team=admin.team, name="E", workload=stock["workload"])
    parts = {name: stock[name] for name in ("application", "recipe", "sut")} | {"drivers": driver_set(stock["drivers"])}
    variant = Variant.objects.create(experiment=experiment, name="v", position=0, **parts)
    add_runs(admin, stock, 10, experiment=experiment, variant=variant, labels={"branch": "main"})
    client.get(url)
    few = queries_of(client, url)
    add_runs(admin, stock, 90, experiment=experiment, variant=variant, labels={"branch": "main"})
    assert queries_of(client, url) <= few <= 22


def test_the_pages_follow_each_other_and_keep_the_filter(admin: Member, stock: dict[str, Any]) -> None:
    add_runs(admin, stock, 60)
    client, url = signed_in(admin), address("runs", admin.team)
    first = client.get(url + "?validity=valid&sort=number&columns=sut")
    assert [run.number for run in first.context["rows"]] == list(range(1, 51))
    older = first.context["older_query"]
    assert "validity=valid" in older
    assert "columns=sut" in older
    second = client.get(f"{url}?{older}")
    assert [run.number for run in second.context["rows"]] == list(range(51, 61))
    back = client.get(f"{url}?{second.context['newer_query']}")
    assert [run.number for run in back.context["rows"]] == list(range(1, 51))


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("q=%232", [2]),
        ("query=2", [2]),
        ("validity=invalid", [3]),
        ("outcome=failed", [2]),
        ("label=branch%3Ddev", [1]),
        ("query=branch:dev", [1]),
        ("sut=nobody", []),
        ("recipe=limits", [3, 2, 1]),
    ],
)
def test_filters_find_their_runs(admin: Member, stock: dict[str, Any], query: str, numbers: list[int]) -> None:
    add_runs(admin, stock, 1, labels={"branch": "dev"})
    add_runs(admin, stock, 1, outcome="failed")
    add_runs(admin, stock, 1, validity="invalid")
    page = signed_in(admin).get(address("runs", admin.team) + f"?{query}")
    assert [run.number for run in page.context["rows"]] == numbers


@pytest.mark.parametrize("query", ["sort=nonsense", "state=nonsense", "cursor=xyz", "since=yesterday", "experiment=a"])
def test_a_wrong_filter_is_explained_and_kept(admin: Member, query: str) -> None:
    page = signed_in(admin).get(address("runs", admin.team) + f"?{query}")
    assert page.status_code == 422
    assert 'role="alert"' in page.content.decode()


def test_chips_switch_a_filter_on_and_off(admin: Member, stock: dict[str, Any]) -> None:
    add_runs(admin, stock, 1)
    page = signed_in(admin).get(address("runs", admin.team) + "?validity=valid&sut=sut-1&columns=sut")
    current = [chip for chip in page.context["quick"] if chip.current]
    assert [chip.label for chip in current] == ["Valid"]
    assert [(chip.label, chip.query) for chip in page.context["active"]] == [
        ("sut: sut-1", "validity=valid&columns=sut")
    ]


def test_a_chip_keeps_what_was_searched_for(admin: Member) -> None:
    page = signed_in(admin).get(address("runs", admin.team) + "?query=tomcat&sort=number")
    assert all("query=tomcat&sort=number" in chip.query for chip in page.context["quick"])


def test_the_columns_stand_in_the_url(admin: Member, stock: dict[str, Any]) -> None:
    add_runs(admin, stock, 1)
    page = signed_in(admin).get(address("runs", admin.team) + "?columns=workload&columns=sut&columns=nonsense")
    assert [column.name for column in page.context["columns"]] == ["number", "workload", "sut"]
    assert "home page v1" in page.content.decode()


def test_a_stored_verdict_stands_in_the_row(admin: Member, stock: dict[str, Any]) -> None:
    experiment = Experiment.objects.create(team=admin.team, name="E", workload=stock["workload"])
    parts = {name: stock[name] for name in ("application", "recipe", "sut")} | {"drivers": driver_set(stock["drivers"])}
    base, other = (
        Variant.objects.create(experiment=experiment, name=name, position=i, **parts) for i, name in enumerate("ab")
    )
    StoredVerdict.objects.create(
        experiment=experiment,
        baseline=base,
        candidate=other,
        metric="throughput_rps",
        outcome="better",
        sentence="b is 12 % better.",
        numbers={},
    )
    add_runs(admin, stock, 1, experiment=experiment, variant=other)
    assert "b is 12 % better." in signed_in(admin).get(address("runs", admin.team)).content.decode()


def test_the_csv_is_the_view_and_no_cell_is_a_formula(admin: Member, stock: dict[str, Any]) -> None:
    add_runs(admin, stock, 1, labels={"note": "=HYPERLINK(1)"}, tags=["+evil"])
    add_runs(admin, stock, 1, validity="invalid")
    type(stock["sut"]).objects.filter(pk=stock["sut"].pk).update(name="=cmd|x")
    url = address("runs_csv", admin.team) + "?validity=valid&columns=sut,throughput_rps"
    answer = signed_in(admin).get(url)
    lines = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert lines == ["number,sut,throughput_rps", "1,'=cmd|x,1000.0"]
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert signed_in(admin).get(address("runs_csv", admin.team) + "?sort=nonsense").status_code == 422


def test_selected_runs_are_compared(admin: Member, stock: dict[str, Any]) -> None:
    add_runs(admin, stock, 2)
    page = signed_in(admin).get(address("compare", admin.team) + "?runs=1&runs=2")
    assert page.status_code == 200
