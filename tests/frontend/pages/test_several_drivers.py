"""Several driver hosts in the forms and on the page of a run."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.events import LoadPart, LoadReported
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, Run, SampleSeries, Variant
from tests.experiments.conftest import ready_host
from tests.frontend.conftest import write
from tests.frontend.pages.test_new_run import experiment_form, run_form
from tests.frontend.test_forms_access import address, signed_in


@pytest.fixture
def two(admin: Member, stock: dict[str, Any]) -> dict[str, Any]:
    """The stock with another driver host."""
    return stock | {"drivers": (*stock["drivers"], ready_host(admin, "driver-2", roles="driver"))}


@pytest.fixture
def browser(admin: Member) -> Client:
    return signed_in(admin)


def test_a_run_is_launched_on_both_and_a_copy_has_both_chosen(
    browser: Client, admin: Member, two: dict[str, Any]
) -> None:
    before = browser.post(address("run_preview", admin.team), run_form(two))
    text = before.content.decode()
    assert "driver-1 (driver host) is ready and free." in text
    assert "driver-2 (driver host) is ready and free." in text
    assert "Its share: 8 of 16 connections." in text
    assert '"drivers": [\n    "driver-1",\n    "driver-2"\n  ]' in before.context["curl"]
    assert browser.post(address("new_run", admin.team), run_form(two)).status_code == 302
    run = Run.objects.get()
    assert run.drivers is not None
    assert run.drivers.names == ["driver-1", "driver-2"]
    form = browser.get(address("new_run", admin.team) + "?from=1").context["form"]
    assert str(form["drivers"]).count("selected") == 2
    assert "driver-1, driver-2" in browser.get(address("queue", admin.team)).content.decode()


def test_a_load_that_does_not_divide_is_refused_in_the_form(
    browser: Client, admin: Member, two: dict[str, Any]
) -> None:
    three = two | {"drivers": (*two["drivers"], ready_host(admin, "driver-3", roles="driver"))}
    answer = browser.post(address("new_run", admin.team), run_form(three))
    assert answer.status_code == 422
    assert "16 connections cannot be divided evenly over 3 driver hosts" in answer.content.decode()
    nobody = browser.post(address("new_run", admin.team), run_form(two | {"drivers": ()}))
    assert (nobody.status_code, Run.objects.count()) == (422, 0)


def test_each_variant_has_its_own_hosts_and_a_copied_row_keeps_them(
    browser: Client, admin: Member, two: dict[str, Any], stock: dict[str, Any]
) -> None:
    form = experiment_form(stock) | {"v1-drivers": [str(host.pk) for host in two["drivers"]]}
    rows = browser.post(address("new_experiment", admin.team), form | {"copy": "1"}).context["rows"]
    assert [len(list(row.initial["drivers"])) for row in rows.forms.values()] == [1, 2, 2]
    assert browser.post(address("new_experiment", admin.team), form).status_code == 302
    variants = Variant.objects.order_by("position")
    assert [variant.drivers.names for variant in variants] == [["driver-1"], ["driver-1", "driver-2"]]


def test_the_page_of_a_run_shows_what_each_host_did(browser: Client, admin: Member, two: dict[str, Any]) -> None:
    run = launch_run(admin, Choice(**two))
    report = {"requests": 3000, "throughput_rps": 300.0, "connections": 8, "errors_status": 7}
    parts = tuple(
        LoadPart("http://sut/", 0, report | {"requests": requests}, None, role, late_s)
        for role, requests, late_s in (("driver", 3000, 0.01), ("driver-2", 1000, 0.04))
    )
    write(run, LoadReported(0, True, 0, "", "", report, parts=parts, start_spread_s=0.03))
    for role, busy in (("driver", 0.25), ("driver-2", 0.61)):
        SampleSeries.objects.create(
            run=run, role=role, channel="cpu_set.busy_ratio", unit="ratio", at_s=[1.0, 2.0], values=[busy, busy]
        )
    page = browser.get(address("run", admin.team, run.number)).content.decode()
    assert "Each load tool" in page
    for words in ("driver-2", "75 %", "25 %", "61 %", "0.04 s"):
        assert words in page, words
