"""Names that nobody could ask for again are refused when they are made, at every door; those that exist go on."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse

from experiments.models import Experiment, Host, Member, Recipe, Run
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import RequestError
from experiments.registry.hosts.inventory import update_host
from experiments.registry.runs.baselines import pin
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import NAMES
from tests.experiments.conftest import RECIPE

NOT_AN_ADDRESS = ["..", ".", "a/b", "/", "bell\x07", "line\nend", "tab\there", "wide\u00a0blank", "\0", "x" * 121]
NO_DOCUMENT = [*NOT_AN_ADDRESS, "a@3", "@12", "Tomcat 11 @007"]
BLANK_AROUND = [" a", "a ", " "]
FINE = ["a@b", "a@3 of us", "a@", "...", "5", "ü/ö".replace("/", "-"), "50 % more?", "a#b", "me@1234567890"]


@pytest.mark.parametrize("name", [*NO_DOCUMENT, *BLANK_AROUND])
def test_a_document_has_no_name_that_cannot_be_launched(
    api: ApiClient, admin: Member, stock: dict[str, Any], name: str
) -> None:
    with pytest.raises(RequestError) as refused:
        save_version(admin, Recipe, name, RECIPE)
    assert refused.value.field == "name"
    answer = api.put(f"/recipes/{quote(name)}", RECIPE)
    if name in ("/", "a/b", "\0"):  # another address, or none
        assert answer.status_code == 404
    else:
        assert (answer.status_code, answer.json()["field"]) == (422, "name"), answer.content
    if name not in BLANK_AROUND or not name.strip():
        page = Client()
        page.force_login(admin.user)
        for tab in ({"steps.0.kind": "limits", "steps.0.nofile": "64"}, {"tab": "yaml", "yaml": "steps: []"}):
            form = {"action": "save", "name": name, **tab}
            assert page.post(reverse("new_document", args=[admin.team.slug, "recipes"]), form).status_code == 422
    assert [one.name for one in Recipe.objects.all()] == ["limits"]


def test_a_page_takes_blanks_around_a_name_off(admin: Member) -> None:
    page = Client()
    page.force_login(admin.user)
    form = {"action": "save", "name": "  mine ", "tab": "yaml", "yaml": "steps: []"}
    assert page.post(reverse("new_document", args=[admin.team.slug, "recipes"]), form).status_code == 302
    assert Recipe.objects.get().name == "mine"


@pytest.mark.parametrize("name", FINE)
def test_every_other_name_is_saved_read_and_launched(api: ApiClient, stock: dict[str, Any], name: str) -> None:
    assert api.put(f"/recipes/{quote(name)}", RECIPE).status_code == 201
    assert api.get(f"/recipes/{quote(name)}").json()["name"] == name
    for reference in (name, f"{name}@1"):
        assert api.post("/runs", {**NAMES, "recipe": reference}).status_code == 202
    assert {run.recipe.name for run in Run.objects.select_related("recipe") if run.recipe} == {name}


@pytest.mark.parametrize("name", ["a@3", "..", " a"])
def test_a_name_that_exists_already_goes_on(api: ApiClient, admin: Member, stock: dict[str, Any], name: str) -> None:
    Recipe.objects.filter(name="limits").update(name=name)
    Host.objects.filter(name="sut-1").update(name=name)
    experiment = _experiment(api, name="q", recipe=f"{name}@1", sut=name)
    if name == name.strip():  # a body of the API loses the blanks
        assert experiment.status_code == 201, experiment.content
        assert api.post("/runs", {**NAMES, "recipe": name, "sut": name}).status_code == 202
    assert save_version(admin, Recipe, name, {**RECIPE, "description": "new"}).version == 2
    assert update_host(admin, Host.objects.get(name=name), user="somebody").user == "somebody"


@pytest.mark.parametrize("name", NOT_AN_ADDRESS)
def test_a_host_has_no_name_that_no_address_can_have(api: ApiClient, stock: dict[str, Any], name: str) -> None:
    added = api.post("/hosts", {"name": name, "address": "192.0.2.7", "user": "bench"})
    changed = api.send("PATCH", "/hosts/sut-1", {"name": name})
    for answer in (added, changed):
        assert answer.status_code in (400, 422), answer.content
        assert answer.json()["field"] in ("name", ""), answer.content
    assert set(Host.objects.values_list("name", flat=True)) == {"sut-1", "driver-1"}


@pytest.mark.parametrize("name", ["12", "bell\x07", "line\nend", "wide\u00a0blank"])
def test_an_experiment_has_no_name_that_means_another_one_and_copies_keep_theirs(
    api: ApiClient, stock: dict[str, Any], name: str
) -> None:
    refused = _experiment(api, name=name)
    assert (refused.status_code, refused.json()["field"]) == (422, "name"), refused.content
    made = _experiment(api, name="q").json()["id"]
    Experiment.objects.filter(pk=made).update(name=name)
    copied = api.post("/experiments/copies", {"experiment": made})
    assert (copied.status_code, Experiment.objects.filter(name=name).count()) == (202, 2), copied.content


@pytest.mark.parametrize("name", [".", "..", "a/../b", "a//b"])
def test_a_baseline_has_no_name_that_no_address_can_have(
    api: ApiClient, admin: Member, stock: dict[str, Any], name: str
) -> None:
    assert api.post("/runs", NAMES).status_code == 202
    with pytest.raises(RequestError) as refused:
        pin(admin, Run.objects.get(), name)
    assert refused.value.field == "name"


def _experiment(api: ApiClient, *, name: str, recipe: str = "limits", sut: str = "sut-1") -> Any:
    variant = {"name": "a", "application": "tomcat", "recipe": recipe, "sut": sut, "drivers": ["driver-1"]}
    return api.post("/experiments", {"name": name, "workload": "home page", "variants": [variant]})
