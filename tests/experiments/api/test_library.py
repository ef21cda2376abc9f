"""The library over the API: list, install, and the experiment that comes of it."""

from __future__ import annotations

from typing import Any

from experiments.asking.library.catalogue import names
from experiments.models import Experiment, Member, Recipe, Run
from tests.experiments.api.conftest import ApiClient
from tests.experiments.conftest import ready_host

PLACE = {"tomcat_home": "/opt/tomcat"}


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
