"""ETag and If-Match: nothing that somebody has not seen is overwritten."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models import Host, Recipe
from tests.experiments.api.conftest import ApiClient
from tests.experiments.conftest import APPLICATION, RECIPE, WORKLOAD

DOCUMENTS: dict[str, Any] = {
    "/applications/tomcat": APPLICATION,
    "/recipes/limits": RECIPE,
    "/workloads/home page": WORKLOAD,
}
CHANGES = [
    *(("PUT", path, {**body, "description": "new"}) for path, body in DOCUMENTS.items()),
    *(("DELETE", path, None) for path in DOCUMENTS),
    ("PATCH", "/hosts/sut-1", {"labels": {"rack": "7"}}),
    ("POST", "/hosts/sut-1/drain", {"drained": True}),
]
READS = [*DOCUMENTS, "/hosts/sut-1"]


@pytest.mark.parametrize("path", READS)
def test_what_has_not_changed_is_not_sent_again(api: ApiClient, stock: dict[str, Any], path: str) -> None:
    first = api.get(path)
    for known in (first["ETag"], f"W/{first['ETag']}", f'"x", {first["ETag"]}', "*"):
        again = api.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert api.get(path, headers={"If-None-Match": '"x"'}).content == first.content


@pytest.mark.parametrize("method, path, body", CHANGES)
def test_a_change_goes_onto_what_was_seen_and_onto_nothing_else(
    api: ApiClient, stock: dict[str, Any], method: str, path: str, body: Any
) -> None:
    read = path.removesuffix("/drain")
    seen = api.get(read)["ETag"]
    for other in ('"another"', f"W/{seen}", "", "x" * 3000):
        refused = api.send(method, path, body, headers={"If-Match": other})
        assert (refused.status_code, refused["Content-Type"]) == (412, "application/problem+json"), refused.content
        assert api.get(read)["ETag"] == seen
    done = api.send(method, path, body, headers={"If-Match": seen})
    assert done.status_code in (200, 201), done.content
    assert done["ETag"] == api.get(read)["ETag"] != seen
    assert api.send(method, path, body, headers={"If-Match": seen}).status_code == 412


@pytest.mark.parametrize("path, body", DOCUMENTS.items())
def test_a_document_can_be_made_only_if_it_is_new_or_only_if_it_is_there(
    api: ApiClient, stock: dict[str, Any], path: str, body: Any
) -> None:
    refused = api.put(path, body, headers={"If-None-Match": "*"})
    assert (refused.status_code, refused.json()["field"]) == (412, "If-None-Match")
    assert api.put(path, body, headers={"If-Match": "*"}).status_code == 200
    new = path + "-2"
    assert api.put(new, body, headers={"If-Match": "*"}).status_code == 412
    assert api.put(new, body, headers={"If-None-Match": "*"}).status_code == 201


def test_without_a_condition_everything_is_as_before(api: ApiClient, stock: dict[str, Any]) -> None:
    assert api.put("/recipes/limits", {**RECIPE, "description": "x"}).status_code == 201
    assert api.send("PATCH", "/hosts/sut-1", {"labels": {}}).status_code == 200
    assert Recipe.objects.count() == 2


def test_another_state_of_a_host_is_another_tag(api: ApiClient, stock: dict[str, Any]) -> None:
    before = api.get("/hosts/sut-1")["ETag"]
    Host.objects.filter(name="sut-1").update(state="dirty", state_reason="a sysctl differs")
    assert api.get("/hosts/sut-1")["ETag"] != before
