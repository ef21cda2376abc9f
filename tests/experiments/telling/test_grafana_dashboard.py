"""The dashboard of the documentation: what Grafana's own library reads of it, and that our API has all it asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db.models import F
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from experiments.models import HardwareProfile, Run, Team
from experiments.registry.runs.windows import unix_ms
from tests.experiments.api.conftest import ApiClient, api, make_api  # noqa: F401 - fixtures
from tests.experiments.trend_runs import AddRun, nights

FILE = Path(__file__).parents[3] / "docs" / "grafana" / "benchhub.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
INFINITY = "yesoreyeram-infinity-datasource"
OF_THE_PLUGIN = {"annotations.list[].target"}
"""What the dashboard's schema leaves to the data source."""


def queries(value: Any = DASHBOARD) -> Iterator[dict[str, Any]]:
    """Every query of the data source, wherever it is in the dashboard."""
    if isinstance(value, list):
        for one in value:
            yield from queries(one)
    elif isinstance(value, dict):
        if "root_selector" in value:
            yield value
        for one in value.values():
            yield from queries(one)


def paths(value: Any, at: str = "") -> set[str]:
    """The places of all values, as `panels[].targets[].url`."""
    if at in OF_THE_PLUGIN:
        return {at}
    if isinstance(value, list):
        return {path for one in value for path in paths(one, f"{at}[]")} or {at}
    if isinstance(value, dict):
        return {path for key, one in value.items() for path in paths(one, f"{at}.{key}".lstrip("."))} or {at}
    return {at}


def test_grafanas_own_library_reads_every_field_of_it() -> None:
    again = json.loads(json.dumps(Dashboard.from_json(DASHBOARD), cls=JSONEncoder))
    assert paths(DASHBOARD) - paths(again) == set()
    assert again["panels"][0]["type"] == "timeseries"


def test_it_names_no_data_source_and_no_installation_of_its_own() -> None:
    refs = re.findall(r'"uid": "([^"]+)"', FILE.read_text(encoding="utf-8"))
    assert set(refs) == {"${datasource}", DASHBOARD["uid"]}
    assert {one["datasource"]["type"] for one in queries()} == {INFINITY}
    assert all(one["url"].startswith("${benchhub}/api/v1/") for one in queries())
    places = [(panel["id"], panel["gridPos"]) for panel in DASHBOARD["panels"]]
    assert len({number for number, _ in places}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for _, place in places)
    names = {one["name"] for one in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{(\w+)", FILE.read_text(encoding="utf-8")))
    assert used - {"__from", "__to", "__data"} == names


def test_series_of_one_workload_can_be_told_apart_in_its_list(
    api: ApiClient,  # noqa: F811
    add_run: AddRun,
) -> None:
    (variable,) = (one for one in DASHBOARD["templating"]["list"] if one["name"] == "series")
    text = next(one for one in variable["query"]["infinityQuery"]["columns"] if one["text"] == "__text")
    profile = HardwareProfile.objects.create(
        team=Team.objects.get(), digest="d" * 64, facts={"cpu.architecture": "x86_64", "cpu.count": "4"}
    )
    for fingerprint, sut_profile in (("f" * 64, None), ("e" * 64, profile)):
        add_run(0, 1000.0, followed=False, fingerprint=fingerprint, sut_profile=sut_profile)
    titles = {row["fingerprint"][0]: row[text["selector"]] for row in api.get("/series").json()}
    assert titles == {"f": "app · load · wrk 4", "e": "app · load · wrk 4 · x86_64, 4 CPUs, dddddddddddd"}


@pytest.mark.parametrize("query", list(queries()), ids=lambda query: query["url"].partition("/v1")[2][:30])
def test_our_api_answers_each_query_with_the_columns_that_it_names(
    query: dict[str, Any],
    api: ApiClient,  # noqa: F811
    add_run: AddRun,
) -> None:
    runs: list[Run] = nights(add_run, [1000.0] * 10 + [800.0] * 10)
    ends = [run.finished_at for run in runs if run.finished_at]
    start, end = ends[0] - timedelta(days=1), ends[-1] + timedelta(days=1)
    Run.objects.filter(finished_at__isnull=False).update(started_at=F("finished_at") - timedelta(minutes=1))
    values = {
        "${benchhub}/api/v1": "",
        "${__from:date:iso}": start.isoformat(),
        "${__to:date:iso}": end.isoformat(),
        "${__from}": str(unix_ms(start)),
        "${__to}": str(unix_ms(end)),
        "${series}": runs[0].fingerprint,
        "${metric}": "throughput_rps",
        "${host:csv}": "sut-1",
        "${kinds:csv}": "run,alert",
    }
    url = query["url"]
    for name, value in values.items():
        url = url.replace(name, quote(value, safe=""))
    assert "$" not in url
    answer = api.get(url)
    assert answer.status_code == 200, answer.content
    rows = answer.json()
    for part in filter(None, query["root_selector"].split(".")):
        rows = rows[part]
    assert len(rows) > 0
    kinds: dict[str, Any] = {
        "number": (int, float),
        "timestamp_epoch": int,
        "timestamp": str,
        "boolean": bool,
        "string": (str, list),
    }
    for column in query["columns"]:
        found = [row[column["selector"]] for row in rows]  # KeyError names the column
        assert all(isinstance(value, kinds[column["type"]]) for value in found if value is not None), column
    given = {column["selector"] for column in query["columns"]}
    some = {name for name in given if any(row[name] is not None for row in rows)}
    assert given - some <= {"latency_p99_ms"}  # which these runs do not have
