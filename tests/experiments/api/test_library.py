"""The library over the API: list, install, and the experiment that comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.asking.library.catalogue import names, tuning
from experiments.models import Experiment, Member, Recipe, Run, Tuning
from tests.experiments.api.conftest import ApiClient
from tests.experiments.asking.test_tuning_suts import known
from tests.experiments.conftest import ready_host

PLACE = {"tomcat_home": "/opt/tomcat"}
PLACES = PLACE | {"liberty_home": "/opt/wlp", "rest_war": "/opt/rest.war", "jmeter_home": "/opt/jmeter"}


def test_the_list_names_every_template_and_the_published_figures(api: ApiClient) -> None:
    listed = api.get("/library").json()
    assert {"tomcat-baseline", "liberty-virtual-threads", "cpu-scaling"} <= {
        one["name"] for one in listed["experiments"]
    }
    assert {one["name"] for one in listed["published"]} == set(names("recorded"))
    found = api.get("/library/tomcat-baseline").json()
    connections = next(one for one in found["settings"] if one["name"] == "connections")
    assert (connections["small"], connections["published"]) == (32, 1280)
    assert found["sources"][0]["url"].startswith("https://learn.arm.com/")
    assert api.get("/library/tomcat-baseline/yaml").content.decode().startswith("title: Tomcat baseline")
    assert api.get("/library/nothing").status_code == 404


def test_a_template_is_installed_and_its_body_makes_the_experiment(api: ApiClient, admin: Member) -> None:
    ready_host(admin, "server", roles="sut")
    ready_host(admin, "loader", roles="driver")
    body = {"settings": PLACE | {"server_cpus": "0-3"}, "sut": "server", "drivers": ["loader"]}
    answer = api.post("/library/tomcat-baseline/install", body)
    assert answer.status_code == 200
    made: dict[str, Any] = answer.json()
    assert [one["name"] for one in made["applications"]] == ["Tomcat 11 examples"]
    assert made["workload"] == {"name": "HelloWorld servlet, wrk", "version": 1}
    assert api.post("/library/tomcat-baseline/install", body).json() == made
    created = api.post("/experiments", made["experiment"])
    assert created.status_code == 201
    experiment = Experiment.objects.get(pk=created.json()["id"])
    assert experiment.labels == {"library": "tomcat-baseline", "scale": "small"}
    assert [one.name for one in experiment.variants.all()] == ["default", "access log off", "request threads = CPUs"]


@pytest.mark.parametrize("scale", ["small", "published"])
@pytest.mark.parametrize("name", names("tunings"))
def test_a_tuning_search_is_installed_and_its_body_starts_it_as_it_is(
    name: str, scale: str, api: ApiClient, admin: Member
) -> None:
    facts = {"cpu.online": "0-7", "memory.total_bytes": str(8 << 30), "java.path.version": "21.0.8"}
    for host, roles in (("server", "sut"), ("loader", "driver")):
        known(ready_host(admin, host, roles=roles, user="root"), facts)
    needed = {one["name"] for one in api.get(f"/library/{name}").json()["settings"]} & PLACES.keys()
    body = {"scale": scale, "settings": {one: PLACES[one] for one in needed}, "sut": "server", "drivers": ["loader"]}
    made = api.post(f"/library/{name}/install", body).json()
    assert made["experiment"] is None
    assert [one["sentence"] for one in made["fits"] if one["result"] == "fail"] == []
    started = api.post("/tunings", made["tuning"])
    assert started.status_code == 202, started.content
    shipped, search = tuning(name), Tuning.objects.get()
    assert search.labels == {"library": name, "scale": scale}
    assert [one["name"] for one in search.space["parameters"]] == [one["name"] for one in shipped.space["parameters"]]
    assert search.space["forbidden"] == shipped.space.get("forbidden", [])
    assert {one["metric"]: one["at_most"] for one in search.limits} == shipped.limits
    assert (search.metric, search.budget_runs) == (shipped.decides, shipped.budget_runs)


def test_tuning_searches_are_listed_with_what_they_try_and_what_is_unsafe(api: ApiClient) -> None:
    listed = api.get("/library").json()
    assert {one["name"] for one in listed["tunings"]} == set(names("tunings"))
    assert not {one["name"] for one in listed["experiments"]} & set(names("tunings"))
    found = api.get("/library/tune-nginx").json()["tuning"]
    assert found["unsafe"] == dict(tuning("tune-nginx").unsafe)
    by_name = {one["name"]: one for one in found["parameters"]}
    assert (by_name["workers"]["low"], by_name["workers"]["high"], by_name["workers"]["default"]) == (1, 4, 1)
    assert (by_name["tcp_nopush"]["choices"], by_name["tcp_nopush"]["only_when"]) == (["on", "off"], "sendfile = on")
    assert found["limits"] == [{"metric": "errors_total", "at_most": 0, "at_least": None}]
    assert api.get("/library/tomcat-baseline").json()["tuning"] is None
    assert api.get("/library/tune-nginx/yaml").content.decode().startswith("title: nginx, six parameters")
    installed = api.post("/library/tune-nginx/install", {}).json()
    assert (installed["experiment"], installed["tuning"]) == (None, None)


def test_several_driver_hosts_are_in_every_variant(api: ApiClient, admin: Member) -> None:
    for name, roles in (("server", "sut"), ("one", "driver"), ("two", "driver")):
        ready_host(admin, name, roles=roles)
    body = b"settings: {tomcat_home: /opt/tomcat, server_cpus: 0-3}\nsut: server\ndrivers: [one, two]\n"
    made = api.post("/library/tomcat-baseline/install", body, content_type="application/yaml").json()
    assert [one["drivers"] for one in made["experiment"]["variants"]] == [["one", "two"]] * 3
    assert "Each of 2 driver hosts does its share: 16 of 32 connections." in [one["sentence"] for one in made["fits"]]
    created = api.post("/experiments", made["experiment"])
    assert created.status_code == 201, created.content
    without = api.post("/library/tomcat-baseline/install", {"sut": "server"})
    assert (without.status_code, without.json()["field"]) == (422, "drivers")


def test_what_is_wrong_is_named_by_its_field(api: ApiClient) -> None:
    missing = api.post("/library/tomcat-baseline/install", {})
    assert (missing.status_code, missing.json()["field"]) == (422, "settings.tomcat_home")
    unknown = api.post("/library/tomcat-baseline/install", {"settings": PLACE, "sut": "none", "drivers": ["none"]})
    assert (unknown.status_code, unknown.json()["field"]) == (422, "sut")
    assert Recipe.objects.count() == 0


def test_nothing_is_installed_when_the_second_server_is_missing(api: ApiClient, admin: Member) -> None:
    ready_host(admin, "server", roles="sut")
    ready_host(admin, "loader", roles="driver")
    body = {"settings": PLACE | {"rest_war": "/opt/rest.war"}, "sut": "server", "drivers": ["loader"]}
    answer = api.post("/library/rest-get/install", body)
    assert (answer.status_code, answer.json()["field"]) == (422, "other_sut"), answer.content
    assert Recipe.objects.count() == 0


def test_published_figures_are_imported_once(api: ApiClient) -> None:
    for _ in range(2):
        answer = api.post("/library/published/tomcat-baseline/import", {})
        assert answer.status_code == 201
        assert [one["validity"] for one in answer.json()][:2] == ["invalid", "invalid"]
    assert Run.objects.count() == 3
