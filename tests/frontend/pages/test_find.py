"""The one search box: everything with a name, in a fixed number of queries."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from experiments.models import Application, Experiment, Member, Series
from tests.experiments.conftest import APPLICATION, admin, make_member, other_admin, ready_host, stock, team
from tests.frontend.flat import flat
from tests.frontend.pages.test_runs import add_runs
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "other_admin", "stock", "team"]


@pytest.fixture
def filled(admin: Member, stock: dict[str, Any]) -> Member:
    add_runs(admin, stock, 3, labels={"branch": "release-11"})
    Experiment.objects.create(team=admin.team, name="Threads", question="Is Tomcat faster?", workload=stock["workload"])
    Series.objects.create(team=admin.team, fingerprint="f" * 64, application="tomcat", workload="home page", tool="wrk")
    return admin


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("tomcat", ["Runs", "Experiments", "Applications", "Trends"]),
        ("TOMCAT faster", ["Experiments"]),
        ("release", ["Runs"]),
        ("sut-1", ["Runs", "Hosts"]),
        ("page", ["Runs", "Workloads", "Trends"]),
        ("limits", ["Runs", "Recipes"]),
        ("100%", []),
        ("", []),
    ],
)
def test_each_kind_of_thing_is_found_by_its_name(filled: Member, text: str, groups: list[str]) -> None:
    page = flat(signed_in(filled).get(address("find", filled.team), {"q": text}).content.decode())
    assert re.findall("<h2>(.*?)</h2>", page) == groups
    assert ("Nothing has a name" in page) == (bool(text) and not groups)


def test_the_number_of_a_run_leads_straight_to_it(filled: Member) -> None:
    client = signed_in(filled)
    for text in ("#2", "2", " 2 "):
        assert client.get(address("find", filled.team), {"q": text}).headers["Location"] == address(
            "run", filled.team, 2
        )
    assert "There is no run #99." in client.get(address("find", filled.team), {"q": "99"}).content.decode()


def test_another_teams_things_are_not_found(filled: Member, other_admin: Member) -> None:
    client = signed_in(other_admin)
    for text in ("tomcat", "sut-1", "2", "limits", "release"):
        page = client.get(address("find", other_admin.team), {"q": text})
        assert page.status_code == 200
        assert page.context["found"].nothing


def test_a_text_that_cannot_be_searched_for_is_refused(filled: Member) -> None:
    assert signed_in(filled).get(address("find", filled.team), {"q": "a" * 201}).status_code == 422
    assert signed_in(filled).get(address("find", filled.team), {"q": "a\0b"}).status_code == 422


def test_the_number_of_queries_does_not_grow(filled: Member, stock: dict[str, Any]) -> None:
    client, url = signed_in(filled), address("find", filled.team) + "?q=o"
    client.get(url)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(url)
        return len(captured)

    few = queries()
    for number in range(12):
        ready_host(filled, f"node-{number}")
        Application.objects.create(team=filled.team, name=f"tomcat {number}", version=1, body=APPLICATION)
        Experiment.objects.create(team=filled.team, name=f"Tomcat {number}", workload=stock["workload"])
    add_runs(filled, stock, 30)
    assert queries() <= few
