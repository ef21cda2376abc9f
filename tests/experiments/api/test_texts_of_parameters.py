"""A parameter that was typed as text reaches the recipe in the type that it declares, through every door."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from clients.python.benchhub_client import Hub, Trouble
from clients.python.benchhub_client.command_line import main
from experiments.models import (
    Bisection,
    CapacitySearch,
    DryRun,
    Experiment,
    Member,
    Recipe,
    Run,
    Tuning,
    Variant,
    Workload,
)
from experiments.registry.documents.versions import save_version
from tests.experiments.api.ci_client import NAMES as WORDS
from tests.experiments.api.ci_client import Ci
from tests.experiments.api.conftest import ApiClient
from tests.experiments.asking.test_searches import RATED
from tests.experiments.conftest import WORKLOAD

RECIPE = {
    "parameters": {
        "commit": {"type": "str", "default": "main"},
        "ratio": {"type": "float", "default": 0.5, "minimum": 0},
        "nofile": {"type": "int", "default": 4096, "minimum": 1024},
        "log": {"type": "bool", "default": False},
    },
    "steps": [{"kind": "limits", "nofile": "${nofile}"}],
}
TEXTS = {"ratio": "1.10", "nofile": "65535", "log": "true"}
VALUES = {"ratio": 1.1, "nofile": 65535, "log": True}
HASHES = ("1234567", "12e4567", "1.10", "true", '"x"', "Infinity")
SETUP: dict[str, Any] = {
    "application": "tomcat",
    "recipe": "built",
    "workload": "rated",
    "sut": "sut-1",
    "drivers": ["driver-1"],
}
OTHERS = tuple(word for word in WORDS if not word.startswith(("--recipe", "--workload")))
CI = (*OTHERS, "--recipe=built", "--workload=rated")
SPACE = {"parameters": [{"name": "nofile", "low": 4096, "high": 65536}]}
DOORS: dict[str, tuple[dict[str, Any], Any]] = {
    "/runs": ({}, lambda: Run.objects.get().spec["recipe"]["parameters"]),  # type: ignore[index]
    "/runs/dry-runs": ({}, lambda: DryRun.objects.get().spec["recipe"]["parameters"]),
    "/searches": (
        {"name": "s", "objective_ms": 50, "low_rps": 1000, "high_rps": 4000},
        lambda: CapacitySearch.objects.get().parameters,
    ),
    "/bisections": (
        {"name": "b", "parameter": "commit", "candidates": ["1234567", "12e4567"]},
        lambda: Bisection.objects.get().parameters,
    ),
    "/tunings": ({"name": "t", "space": SPACE, "warm": False}, lambda: Tuning.objects.get().parameters),
}


@pytest.fixture
def built(admin: Member, stock: dict[str, Any]) -> None:
    save_version(admin, Recipe, "built", RECIPE)
    save_version(admin, Workload, "rated", WORKLOAD | RATED)


@pytest.mark.parametrize("path", DOORS)
def test_every_operation_reads_texts_by_the_declared_type(api: ApiClient, built: None, path: str) -> None:
    more, stored = DOORS[path]
    answer = api.post(path, {**SETUP, **more, "parameters": {**TEXTS, "commit": "12e4567"}})
    assert answer.status_code == 202, answer.content
    found = stored()
    assert {name: found[name] for name in (*VALUES, "commit")} == {**VALUES, "commit": "12e4567"}
    refused = api.post(path, {**SETUP, **more, "parameters": {"nofile": "12e4567"}})
    assert (refused.status_code, refused.json()["field"]) == (422, "parameters.nofile")
    assert refused.json()["detail"] == "Parameter nofile: '12e4567' is not of type int."
    for parameters, field, said in (
        ({"ratio": "-1"}, "ratio", "Parameter ratio: -1 is below the minimum 0."),
        ({"nofiel": 4096}, "nofiel", "The recipe has no parameter 'nofiel'; it has: commit, log, nofile, ratio."),
    ):
        refused = api.post(path, {**SETUP, **more, "parameters": parameters})
        assert (refused.status_code, refused.json()["field"]) == (422, f"parameters.{field}")
        assert refused.json()["detail"].endswith(said)


def test_variants_of_an_experiment_are_read_and_stored_in_the_declared_type(api: ApiClient, built: None) -> None:
    variant = {name: value for name, value in SETUP.items() if name != "workload"}
    variants: list[dict[str, Any]] = [{**variant, "name": "a"}, {**variant, "name": "b", "parameters": dict(TEXTS)}]
    body = {"name": "e", "workload": "rated", "variants": variants}
    for path, status in (("/experiments/forecasts", 200), ("/experiments", 201)):
        assert api.post(path, body).status_code == status
        refused = api.post(path, {**body, "variants": [variants[0], {**variants[1], "parameters": {"log": "yes"}}]})
        assert (refused.status_code, refused.json()["field"]) == (422, "variants.1.parameters.log"), path
    assert [one.parameters for one in Variant.objects.order_by("position")] == [{}, VALUES]
    assert Experiment.objects.count() == 1


@pytest.mark.parametrize("text", HASHES)
def test_a_text_that_looks_like_a_number_is_passed_as_it_is_typed(
    ci: Ci, built: None, live_server: LiveServer, token: str, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    given = [f"--param=commit={text}", *(f"--param={name}={value}" for name, value in TEXTS.items())]
    started = ci("trigger", *CI, *given)
    assert started.returncode == 0, started.stderr
    monkeypatch.setenv("BENCHHUB_URL", live_server.url)
    monkeypatch.setenv("BENCHHUB_TOKEN", token)
    assert main(["run", *CI, "--no-wait", *given]) == 0
    assert [run.spec["recipe"]["parameters"] for run in Run.objects.all() if run.spec] == [
        {**VALUES, "commit": text}
    ] * 2


def test_a_number_that_json_does_not_have_is_refused_before_it_is_sent(hub: Hub, ci: Ci, built: None) -> None:
    with pytest.raises(Trouble, match="not finite"):
        hub.launch(**SETUP, parameters={"ratio": float("inf")})
    space = Path(os.devnull)
    done = ci("tune", *CI, f"--space={space}", "--limit=latency_p99_ms<=inf")
    assert (done.returncode, "not finite" in done.stderr) == (3, True), done.stderr
    assert not Run.objects.exists()
