"""A run of several hosts is shown by its members, everywhere; one of a single server as it always was."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.models import Experiment, Member, Metric, Run
from tests.experiments.api.conftest import ApiClient, api, make_api
from tests.experiments.finished import finish_next, report
from tests.experiments.systems import MEMORY_BYTES, run_of_a_system, system_of
from tests.frontend.flat import flat
from tests.frontend.pages.test_new_run import experiment_form
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["api", "make_api"]

FULL_DATABASE = {"sut": 0.4, "database": 0.98, "app": 0.2}
IS_THE_LIMIT = "The database is the limit: its CPUs were 98 % busy, those of web 40 %, app 20 %."
SMALL, LARGE = {"cpu.model": "small", "cpu.count": "2"}, {"cpu.model": "large", "cpu.count": "4"}


@pytest.fixture
def system(admin: Member, stock: dict[str, Any]) -> dict[str, Any]:
    return system_of(admin, stock)


def _finished(admin: Member, system: dict[str, Any], **more: Any) -> Run:
    launch_run(admin, Choice(**system))
    return finish_next(run_of_a_system(more.pop("busy", FULL_DATABASE), **more))


def test_every_member_has_its_figures_in_the_run_and_the_limit_is_named(
    admin: Member, system: dict[str, Any], browser: Client, api: ApiClient
) -> None:
    run = _finished(admin, system, facts={"database": LARGE})
    page = flat(browser.get(f"/t/{admin.team.slug}/runs/{run.number}/").content.decode())
    assert "Members of the system" in page
    assert IS_THE_LIMIT in page
    assert "Hardware of database" in page
    web, database, app = api.get(f"/runs/{run.number}").json()["members"]
    assert [one["role"] for one in (web, database, app)] == ["web", "database", "app"]
    assert [one["is_loaded"] for one in (web, database, app)] == [True, False, False]
    assert (web["cpu_ratio"], web["host"], web["server"]) == (pytest.approx(0.4), "sut-1", "nginx")
    assert database["cpu_ratio"] == pytest.approx(0.98)
    assert database["server_cpu_ratio"] == pytest.approx(3.92)
    assert database["memory_used_bytes"] == web["memory_used_bytes"] == MEMORY_BYTES
    assert (database["received_bytes_per_s"], database["sent_bytes_per_s"]) == (2e6, 5e6)
    figures = {one["name"]: one for one in api.get(f"/runs/{run.number}/metrics").json()}
    assert (figures["database.cpu_ratio"]["label"], figures["database.cpu_ratio"]["unit"]) == (
        "CPU of database",
        "ratio",
    )
    text = api.get(f"/runs/{run.number}/report?format=markdown").content.decode()
    assert "Members of the system" in text
    assert IS_THE_LIMIT in text


def test_what_nobody_saw_of_a_member_is_not_0_and_no_limit_is_named(
    admin: Member, system: dict[str, Any], api: ApiClient
) -> None:
    run = _finished(admin, system, busy={"sut": 0.99, "database": None, "app": 0.2})
    answer = api.get(f"/runs/{run.number}").json()
    (database,) = (one for one in answer["members"] if one["role"] == "database")
    assert {database[name] for name in database if name.endswith(("_ratio", "_bytes", "_per_s"))} == {None}
    (limit,) = (one for one in answer["findings"] if one["check"] == "system_limit")
    assert limit["sentence"] == "Which member is the limit is not known: the CPUs of database were not seen."


def test_a_comparison_keeps_roles_apart(admin: Member, system: dict[str, Any], browser: Client, api: ApiClient) -> None:
    first = _finished(admin, system, facts={"database": SMALL, "app": LARGE})
    second = _finished(
        admin, system, busy={"sut": 0.95, "database": 0.5, "app": 0.2}, facts={"database": LARGE, "app": LARGE}
    )
    answer = api.get(f"/compare?baseline={first.number}&candidate={second.number}").json()
    rows = {row["metric"]: row["values"] for row in answer["metrics"]}
    assert rows["database.cpu_ratio"] == [pytest.approx(0.98), pytest.approx(0.5)]
    assert rows["app.memory_used_bytes"] == [MEMORY_BYTES, MEMORY_BYTES]
    assert [one["what"] for one in answer["confounders"] if " of " in one["what"]] == ["hardware of database"]
    different = {one["path"]: one["values"] for one in answer["hardware"]["drift"]}
    assert different["members.database.cpu.model"] == ["small", "large"]
    assert not [path for path in different if path.startswith("members.app.")]
    page = flat(browser.get(f"/t/{admin.team.slug}/compare/?runs={first.number},{second.number}").content.decode())
    assert IS_THE_LIMIT in page
    assert "The web is the limit" in page


def test_the_answer_of_an_experiment_names_the_member_that_limits(
    admin: Member, system: dict[str, Any], browser: Client, api: ApiClient
) -> None:
    experiment = _experiment(admin, system)
    where = f"/t/{admin.team.slug}/experiments/{experiment.pk}/"
    page = flat(browser.get(where).content.decode())
    assert IS_THE_LIMIT in page
    assert "Of the baseline: The web is the limit" in page
    assert "with the CPUs of web 40 % busy" in page
    told = flat(browser.get(f"{where}report/").content.decode())
    assert f"busy database: {IS_THE_LIMIT}" in told
    assert "CPU of database" in told
    found = api.get(f"/experiments/{experiment.pk}/report").json()
    assert [(one["variant"], one["role"]) for one in found["limits"]] == [
        ("calm", "web"),
        ("busy database", "database"),
    ]
    assert dict(found["variants"][0]["members"]) == {"app": "app", "database": "db"}
    assert {machine["role"] for machine in found["machines"]} == {"SUT", "app", "database", "driver"}
    assert dict(found["versions"]) == {
        "server": "11.0.9",
        "app": "app 1",
        "database": "database 1",
        "load tool": "4.2.0",
    }
    assert browser.get(f"{where}report.pdf").content[:4] == b"%PDF"


def _experiment(admin: Member, system: dict[str, Any]) -> Experiment:
    parts = {key: system[key] for key in ("application", "recipe", "sut", "drivers", "members")}
    candidates = [Candidate(name=name, **parts) for name in ("calm", "busy database")]
    experiment = create_experiment(
        admin, name="shop", workload=system["workload"], candidates=candidates, repetitions=1, order="sequential"
    )
    for _ in launch_experiment(admin, experiment):
        live = Run.objects.filter(state="queued").order_by("number").first()
        assert live is not None
        is_calm = live.variant is not None and live.variant.name == "calm"
        busy = {"sut": 0.95, "database": 0.5, "app": 0.2} if is_calm else FULL_DATABASE
        finish_next(run_of_a_system(busy, load=report(1000.0 if is_calm else 800.0)))
    return experiment


def test_a_single_server_has_no_word_of_members(
    admin: Member, stock: dict[str, Any], browser: Client, api: ApiClient
) -> None:
    launch_run(admin, Choice(**stock))
    run = finish_next()
    assert "members" not in api.get(f"/runs/{run.number}").json()
    assert not [name for name in run.metrics if "." in name.replace("p99.9", "")]
    assert "Members of the system" not in browser.get(f"/t/{admin.team.slug}/runs/{run.number}/").content.decode()


def test_a_metric_of_a_member_that_no_application_has_is_unknown(
    admin: Member, system: dict[str, Any], api: ApiClient
) -> None:
    run = _finished(admin, system)
    known, unknown = (
        api.get(f"/series/{run.fingerprint}?metric={name}") for name in ("database.cpu_ratio", "cache.cpu_ratio")
    )
    assert (known.status_code, unknown.status_code) == (200, 422)
    Metric.objects.create(team=admin.team, name="cache.cpu_ratio", unit="ratio", direction="lower")
    declared = api.get(f"/series/{run.fingerprint}?metric=cache.cpu_ratio")
    assert declared.status_code == 200, "a team's own metric of such a name"


def test_the_form_of_an_experiment_asks_for_the_host_of_each_member(admin: Member, system: dict[str, Any]) -> None:
    client, url = signed_in(admin), address("new_experiment", admin.team)
    database, app = (system["members"][role] for role in ("database", "app"))
    rows = client.post(url, experiment_form(system, refresh="1")).content.decode()
    assert rows.count('name="v0-m_database"') == rows.count('name="v0-m_app"') == 1  # once, for all variants
    hosts = {"v0-m_database": str(database.pk), "v0-m_app": str(app.pk), "v1-m_app": str(system["sut"].pk)}
    rows = client.post(url, experiment_form(system, refresh="1", **hosts)).content.decode()
    assert (rows.count('name="v0-m_database"'), rows.count('name="v1-m_app"')) == (1, 1)  # what differs is a column
    answer = client.post(url, experiment_form(system, draft="1", **hosts))
    assert answer.status_code == 302, answer.content.decode()
    first, second = Experiment.objects.get().variants.order_by("pk")
    assert first.drivers.members == {"database": database, "app": app}
    assert second.drivers.members == {"database": database, "app": system["sut"]}
