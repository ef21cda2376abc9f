"""What gets a name gets none that cannot be said again later: a table of every field of the API that names something.

The rules of single kinds, and their pages, are in test_names.py.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments.models import Member, Recipe
from experiments.registry.documents.versions import save_version
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import BODIES, NAMES, SCHEMA, full  # noqa: F401 - the fixture
from tests.experiments.conftest import RECIPE

HIDDEN = ["   ", "bell\x07", "turned\u202eround", "\0", "x" * 5000]
SHOWN = [*HIDDEN, "line\nend", "tab\there", "wide\u00a0blank"]
"""For what is shown and chosen from a list: everything but what cannot be seen, typed or fitted into a line."""
ONE_WORD = [*SHOWN, "two words", "#1", "a:b"]
KEY = [*SHOWN, "two words", "/a", ".", "..", "ü", "a=b", "a,b"]
IN_ADDRESSES = [*SHOWN, ".", "..", "/", "a/b"]
OF_LINKS = [*HIDDEN, "a=b"]  # blanks of all kinds become one
OF_DOCUMENTS = [*IN_ADDRESSES, "a@3"]

FIELDS: Sequence[tuple[str, str, str, Sequence[str]]] = (
    # operation, its address, the field (a number counts in a list), names that it refuses
    ("create_host", "POST /hosts", "name", IN_ADDRESSES),
    ("create_host", "POST /hosts", "labels", KEY),
    ("change_host", "PATCH /hosts/sut-1", "name", IN_ADDRESSES),
    ("change_host", "PATCH /hosts/sut-1", "labels", KEY),
    ("create_host", "POST /hosts", "link_templates.0.name", OF_LINKS),
    ("change_host", "PATCH /hosts/sut-1", "link_templates.0.name", OF_LINKS),
    ("create_experiment", "POST /experiments", "name", [*SHOWN, "12"]),
    ("create_experiment", "POST /experiments", "variants.0.name", SHOWN),
    ("create_experiment", "POST /experiments", "labels", KEY),
    ("change_experiment", "PATCH /experiments/{experiment_id}", "name", [*SHOWN, "12"]),
    ("change_experiment", "PATCH /experiments/{experiment_id}", "labels", KEY),
    ("launch_copy", "POST /experiments/copies", "labels", KEY),
    ("create_run", "POST /runs", "labels", KEY),
    ("create_run", "POST /runs", "tags.0", ONE_WORD),
    ("start_dry_run", "POST /runs/dry-runs", "labels", KEY),
    ("tag_runs", "POST /runs/tag", "tags.0", ONE_WORD),
    ("add_run_profile", "POST /runs/{ended}/profiles", "name", IN_ADDRESSES[1:]),  # empty: one is made up
    ("import_timers", "POST /runs/{ended}/timers", "name", [*SHOWN, "a/b"]),
    ("start_search", "POST /searches", "name", SHOWN),
    ("start_search", "POST /searches", "labels", KEY),
    ("start_bisection", "POST /bisections", "name", SHOWN),
    ("start_bisection", "POST /bisections", "labels", KEY),
    ("start_tuning", "POST /tunings", "name", SHOWN),
    ("start_tuning", "POST /tunings", "labels", KEY),
    ("create_schedule", "POST /schedules", "name", SHOWN),
    ("create_schedule", "POST /schedules", "labels", KEY),
    ("change_schedule", "PATCH /schedules/{schedule_id}", "name", SHOWN),
    ("change_schedule", "PATCH /schedules/{schedule_id}", "labels", KEY),
    ("create_view", "POST /views", "name", SHOWN),
    ("change_view", "PATCH /views/{view_id}", "name", SHOWN),
    ("create_alert_rule", "POST /alert-rules", "name", SHOWN),
    ("create_alert_rule", "POST /alert-rules", "labels", KEY),
    ("change_alert_rule", "PATCH /alert-rules/{rule_id}", "name", SHOWN),
    ("change_alert_rule", "PATCH /alert-rules/{rule_id}", "labels", KEY),
    ("create_webhook", "POST /webhooks", "name", SHOWN),
    ("change_webhook", "PATCH /webhooks/{webhook_id}", "name", SHOWN),
    ("create_prometheus_source", "POST /prometheus-sources", "name", SHOWN),
    ("create_prometheus_source", "POST /prometheus-sources", "queries.0.channel", [*ONE_WORD, "A", "a.b"]),
    ("change_prometheus_source", "PATCH /prometheus-sources/{source_id}", "name", SHOWN),
    ("change_prometheus_source", "PATCH /prometheus-sources/{source_id}", "queries.0.channel", [*ONE_WORD, "A", "a.b"]),
    ("create_token", "POST /tokens", "name", SHOWN),
    ("create_service", "POST /services", "name", IN_ADDRESSES),
    ("change_own_team", "PATCH /team", "name", SHOWN),
    ("change_own_team", "PATCH /team", "link_templates.0.name", OF_LINKS),
    ("create_import", "POST /imports", "labels", KEY),
    ("create_result", "POST /results", "tool", HIDDEN),
    ("create_result", "POST /results", "history", HIDDEN[1:]),  # empty: none
    ("create_result", "POST /results", "tags.0", ONE_WORD),
    ("create_result", "POST /results", "labels", KEY),
    ("create_result", "POST /results", "parameters", SHOWN),
    ("create_result", "POST /results", "own_metrics", KEY),
    ("create_result", "POST /results", "series.0.channel", HIDDEN),
    ("create_result", "POST /results", "application", OF_DOCUMENTS[1:]),  # empty: none
    ("create_result", "POST /results", "recipe", OF_DOCUMENTS[1:]),
    ("create_result", "POST /results", "workload", OF_DOCUMENTS[1:]),
    ("create_results", "POST /results/batch", "results.0.history", HIDDEN[1:]),
    ("create_results", "POST /results/batch", "results.0.labels", KEY),
    ("create_results", "POST /results/batch", "results.0.own_metrics", KEY),
    ("create_results", "POST /results/batch", "results.0.parameters", SHOWN),
    ("create_results", "POST /results/batch", "results.0.tags.0", ONE_WORD),
    ("create_results", "POST /results/batch", "results.0.series.0.channel", HIDDEN),
    ("add_result_series", "POST /results/{ended}/series", "series.0.channel", HIDDEN),
)
NOTHING_MADE = {"untag_runs", "forecast_experiment"}
NAMING = ("name", "history", "channel", "labels", "tags", "own_metrics")
INSIDE = ("space.", "spec.", "application.", "recipe.", "workload.", "sut.", "drivers.", "members.")
"""Parts of whole specifications and search spaces, whose names are those of documents and their parameters."""


def test_a_name_that_cannot_be_used_later_is_refused_where_it_is_made(
    api: ApiClient,
    admin: Member,
    full: dict[str, str],  # noqa: F811
) -> None:
    save_version(admin, Recipe, "limits", {**RECIPE, "description": "the second version, which a bisection needs"})
    ended = api.post("/results", BODIES["create_result"]).json()["number"]
    accepted = []
    for operation, address, field, refused in FIELDS:
        method, path = address.format(**full, ended=ended).split()
        for name in refused:
            answer = api.send(method, path, _with(operation, field, name, int(full["experiment_id"])))
            if answer.status_code not in (400, 422) or not _names(answer.json()["field"], field, name):
                accepted.append((operation, field, name[:20], answer.status_code, answer.content[:200]))
    assert {one[:2]: one[2:] for one in accepted} == {}


def test_the_table_has_every_field_that_names_something() -> None:
    named = {(operation, field.replace(".0", "")) for operation, _, field, _ in FIELDS}
    there = {
        (said["operationId"], field)
        for methods in SCHEMA["paths"].values()
        for said in methods.values()
        if "requestBody" in said and not said["operationId"].startswith("save_")  # name in address
        for content in said["requestBody"]["content"].values()
        for field in _below(content["schema"], "", 0)
        if field.rpartition(".")[2] in NAMING and not field.startswith(INSIDE)
    }
    assert {one for one in there - named if one[0] not in NOTHING_MADE} == set()


def _below(schema: dict[str, Any], before: str, depth: int) -> Iterator[str]:
    if "$ref" in schema:
        schema = SCHEMA["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _below(one, before, depth)
    if "items" in schema:
        yield from _below(schema["items"], before, depth)
    for name, one in schema.get("properties", {}).items():
        yield before + name
        if depth < 4:
            yield from _below(one, f"{before}{name}.", depth + 1)


REPORT = (Path(__file__).parents[2] / "agents/cases/wrk/basic.txt").read_text()
LISTS: dict[str, list[Any]] = {
    "series": [{"channel": "heap", "at_s": [0], "values": [1]}],
    "queries": [{"channel": "load1", "query": "up"}],
    "link_templates": [{"name": "a", "url": "https://dashboards.example.com/"}],
}
"""What stands in a list that a body may leave out."""


def _with(operation: str, field: str, name: str, experiment: int) -> Any:
    """A body that fits but for this name; what is kept by names has it as a key."""
    body: Any = copy.deepcopy({**NAMES, "tags": ["a"]} if operation == "create_run" else BODIES[operation])
    if operation == "create_results":  # a batch of one does without the place of its result
        body["results"] += body["results"]
    if operation == "create_import":
        body["text"] = REPORT
    *path, last = field.split(".")
    if operation == "create_schedule":
        body["experiment"] = experiment
    if "name" in body and field != "name":
        body["name"] = "not-there-yet"
    place: Any = body
    for part in path:
        if part.isdigit():
            place = place[int(part)]
        else:
            place = place.setdefault(part, copy.deepcopy(LISTS.get(part, ["a"])))
    figure = {"value": 1, "unit": "ms", "direction": "lower"}
    value: Any = {"own_metrics": {name: figure}}.get(last, {name: "1"} if last in ("labels", "parameters") else name)
    if last.isdigit():
        place[int(last)] = value
    else:
        place[last] = value
    return body


def _names(said: str, field: str, name: str) -> bool:
    """Whether the refusal names the field, or that NUL stands nowhere in a body."""
    return name == "\0" or said.startswith((field.split(".")[0], field.removesuffix(".0")))
