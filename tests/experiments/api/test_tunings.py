"""Tuning searches over the API, with the space as an object or as YAML, and benchhub-ci."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.models import Host, Member, Recipe, Run, Tuning, TuningTrial
from experiments.registry.documents.versions import save_version
from tests.experiments.api.ci_client import NAMES, Ci
from tests.experiments.api.conftest import ApiClient
from tests.experiments.asking.test_tuning_suts import known
from tests.experiments.asking.test_tunings import RECIPE, SPACE
from tests.experiments.conftest import ready_host
from tests.experiments.finished import finish_next, report, whole_run
from tests.experiments.systems import system_of
from tests.frontend.tuned import tuned

YAML = """
parameters:
  - {name: nofile, low: 1024, high: 65536, log: true}
  - {name: mode}
forbidden:
  - mode = fast and nofile > 60000
"""


@pytest.fixture
def body(admin: Member, stock: dict[str, Any]) -> dict[str, Any]:
    save_version(admin, Recipe, "limits", RECIPE)
    return {
        "name": "Faster?", "application": "tomcat", "recipe": "limits", "workload": "home page", "sut": "sut-1",
        "drivers": ["driver-1"], "space": SPACE, "budget_runs": 30,
        "limits": [{"metric": "latency_p99_ms", "at_most": 50}],
    }  # fmt: skip


def test_a_search_over_the_api_from_its_start_to_its_end(api: ApiClient, body: dict[str, Any]) -> None:
    started = api.post("/tunings", body)
    assert started.status_code == 202, started.content
    made = started.json()
    one = f"/tunings/{made['id']}"
    assert (made["left_runs"], made["trials"][0]["config"]) == (30, {"nofile": 4096, "nproc": 4096, "mode": "plain"})
    assert made["limits"] == [{"metric": "latency_p99_ms", "at_most": 50.0, "at_least": None}]
    finish_next(whole_run(report(1000.0)))
    assert api.post(f"{one}/pause").json()["paused"] is True
    assert api.post(f"{one}/pause").status_code == 409
    assert api.post(f"{one}/resume").json()["paused"] is False
    for _ in range(2):  # a client that lost the answer asks again
        more = api.post(f"{one}/budget", {"runs": 10}, headers={"Idempotency-Key": "more"})
        assert more.json()["budget_runs"] == 40
    assert api.post(f"{one}/budget", {"runs": 290}).status_code == 422
    assert api.post(f"{one}/smallest").status_code == 409
    assert api.post(f"{one}/recipe").status_code == 409
    verdict = api.get(f"{one}/verdict").json()
    assert (verdict["finished"], verdict["reasons"]) == (False, ["1 run is over, at most 39 to go."])
    left_out = api.post(f"{one}/region", {"mixture": "nproc > 8000"})
    assert (left_out.status_code, left_out.json()["space"]["forbidden"]) == (202, ["nproc > 8000"])
    assert api.post(f"{one}/region", {"mixture": "mode = plain"}).json()["field"] == "mixture"
    assert api.post(f"{one}/cancel").json()["state"] == "cancelled"
    assert api.get(f"{one}/verdict").json()["outcome"] == "error"
    assert [row["id"] for row in api.get("/tunings?state=cancelled").json()["items"]] == [made["id"]]


def test_a_forecast_has_the_hours_that_the_budget_lacks_and_runs_alone_are_refused(
    api: ApiClient, body: dict[str, Any]
) -> None:
    one = f"/tunings/{api.post('/tunings', body | {'budget_hours': 9}).json()['id']}"
    assert api.get(one).json()["more_hours"] is None
    finish_next(whole_run(report(1000.0)))
    TuningTrial.objects.filter(result="ok").update(duration_s=1800.0)
    Tuning.objects.update(state="finished", outcome="budget_too_small", more_runs=20, budget_hours=1.0)
    assert api.get(one).json()["more_hours"] == 10.5
    refused = api.post(f"{one}/budget", {"runs": 20})
    assert (refused.status_code, refused.json()["field"]) == (422, "hours")
    assert api.post(f"{one}/budget", {"hours": 10.5}).json()["state"] == "running"


def test_a_space_may_be_yaml_and_what_does_not_fit_is_named_by_its_field(api: ApiClient, body: dict[str, Any]) -> None:
    made = api.post("/tunings", body | {"space": YAML}).json()
    assert [one["name"] for one in made["space"]["parameters"]] == ["nofile", "mode"]
    assert made["space"]["forbidden"] == ["mode = fast and nofile > 60000"]
    runs = Run.objects.count()
    for space, field in ((YAML.replace("1024", "2"), "space.nofile"), ("parameters: 4", "space.parameters")):
        answer = api.post("/tunings", body | {"space": space})
        assert answer.status_code == 422
        assert field in answer.content.decode()
    misspelt = body | {"limits": [{"metric": "latency_p99_ms", "at_most": 50, "at_mots": 5}]}
    assert api.post("/tunings", misspelt).json()["field"] == "limits.0.at_mots"
    wrong = {"parameters": [{"name": "nofile", "low": "few"}]}
    assert api.post("/tunings", body | {"space": wrong}).json()["field"] == "space.parameters.0.low"
    assert api.post("/tunings", body | {"space": 4}).json()["field"] == "space"
    assert (Run.objects.count(), Tuning.objects.count()) == (runs, 1)


def test_equal_servers_and_the_place_and_time_of_the_confirmation_stand_in_the_body_or_in_the_yaml(
    api: ApiClient, admin: Member, body: dict[str, Any]
) -> None:
    for host in (*Host.objects.filter(name="sut-1"), *(ready_host(admin, name) for name in ("sut-2", "sut-3"))):
        known(host)
    given = {"further_suts": ["sut-2"], "confirm_sut": "sut-3", "confirm_after_hours": 12}
    text = YAML + "further_suts: [sut-2]\nconfirm_sut: sut-3\nconfirm_after_hours: 12\n"
    for wanted in (body | given, body | {"space": text}):
        made = api.post("/tunings", wanted).json()
        assert {name: made[name] for name in given} == given
        assert (made["confirms_at"], made["trials"][0]["sut"]) == (None, "sut-1")
    for change, field in (
        ({"further_suts": ["sut-9"]}, "further_suts.0"),
        ({"further_suts": ["sut-2", "sut-1"]}, "further_suts"),
        ({"confirm_sut": "driver-1"}, "confirm_sut"),
        ({"confirm_after_hours": -1}, "confirm_after_hours"),
        ({"space": text, "confirm_sut": "sut-3"}, "confirm_sut"),
        ({"space": YAML + "further_suts: sut-2"}, "further_suts"),
    ):
        answer = api.post("/tunings", body | change)
        assert answer.status_code == 422
        assert answer.json()["field"] == field, answer.content
    assert Tuning.objects.count() == 2


OF_THE_SEARCH = """
metric: latency_p99_ms
limits:
  - {metric: throughput_rps, at_least: 900}
  - {metric: errors_total, at_most: 0}
margin_ratio: 0.05
budget_runs: 40
budget_hours: 3
reduces: true
warm: false
"""


def test_all_fields_of_a_search_stand_in_the_body_or_in_the_yaml(api: ApiClient, body: dict[str, Any]) -> None:
    bare = {name: body[name] for name in ("name", "application", "recipe", "workload", "sut", "drivers")}
    made = api.post("/tunings", bare | {"space": YAML + OF_THE_SEARCH})
    assert made.status_code == 202, made.content
    tuning = Tuning.objects.get()
    assert (tuning.metric, tuning.margin_ratio, tuning.reduces) == ("latency_p99_ms", 0.05, True)
    assert (tuning.budget_runs, tuning.budget_hours) == (40, 3.0)
    assert [(one["metric"], one["at_most"], one["at_least"]) for one in tuning.limits] == [
        ("throughput_rps", None, 900.0), ("errors_total", 0.0, None),
    ]  # fmt: skip
    for more, beside, field in (
        ("limits: [{metric: errors_total}]", {}, "limits"),
        ("limits: {errors_total: 0}", {}, "limits"),
        ("limits: [{metric: latency_p99_ms, at_most: .inf}]", {}, "limits.0.at_most"),
        ("limits: [{metric: throughput_rps, at_least: .nan}]", {}, "limits.0.at_least"),
        ("limits: [{metric: latency_p99_ms, at_most: 50, at_mots: 5}]", {}, "limits.0.at_mots"),
        ("budget_runs: many", {}, "budget_runs"),
        ("reduces: true", {"reduces": False}, "reduces"),
        ("sut: sut-2", {}, "space.sut"),
        ("name: Faster?", {}, "space.name"),
    ):
        answer = api.post("/tunings", bare | beside | {"space": f"{YAML}{more}\n"})
        assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content


def test_an_answer_is_told_with_its_interval_and_saved_as_a_recipe(
    api: ApiClient, admin: Member, body: dict[str, Any]
) -> None:
    made = api.post("/tunings", body).json()
    default = made["default"]
    Tuning.objects.update(
        state="finished", outcome="better", sentence="mode=fast is better.", winner={**default, "mode": "fast"},
        gain_ratio=0.24, low_ratio=0.22, high_ratio=0.26,
        smallest={"config": {**default, "mode": "fast"}, "dropped": [], "each": []},
    )  # fmt: skip
    answer = api.get(f"/tunings/{made['id']}/verdict").json()
    assert (answer["outcome"], answer["finished"], answer["ci95_low_pct"]) == ("better", True, 22.0)
    assert "| mode | plain | fast |" in answer["markdown"]
    save_version(admin, Recipe, "limits", {**RECIPE, "steps": []})
    refused = api.post(f"/tunings/{made['id']}/recipe")
    assert (refused.status_code, "without_version=3" in refused.content.decode()) == (409, True)
    saved = api.post(f"/tunings/{made['id']}/recipe?without_version=3")
    assert (saved.status_code, saved.json()["name"]) == (201, "limits")
    assert api.get(f"/tunings/{made['id']}").json()["smaller_recipe"] == saved.json()


def test_the_parameters_are_ranked_with_their_belief_and_each_trial_is_a_line_over_them(
    api: ApiClient, admin: Member, stock: dict[str, Any]
) -> None:
    search = tuned(admin, stock, 60)
    told = api.get(f"/tunings/{search.pk}/effects").json()
    first = told["effects"][0]
    assert (first["parameter"], first["is_clear"], len(told["effects"])) == ("workers", True, 12)
    trials = [one for one in api.get(f"/tunings/{search.pk}").json()["trials"] if one["limited"]]
    assert {(one["limited"][0]["metric"], one["limited"][0]["held"]) for one in trials} == {
        ("latency_p99_ms", True), ("latency_p99_ms", False),
    }  # fmt: skip
    spreads = [one["spread_pct"] for one in told["effects"]]
    assert spreads == sorted(spreads, reverse=True)
    for one in told["effects"]:
        assert len({len(one[name]) for name in ("values", "change_pct", "low_pct", "high_pct")}) == 1
        assert all(low <= change <= high for low, change, high in zip(
            one["low_pct"], one["change_pct"], one["high_pct"], strict=True
        ))  # fmt: skip
    lines = told["coordinates"]
    assert [one["position"] for one in lines] == list(range(60))
    for one in lines:
        assert (one["values"]["region_mb"] is None) == (one["values"]["collector"] != "G1")
        assert (one["against_pct"] is None) == (one["result"] != "ok")
    search.trials.filter(position__gt=9).delete()
    few = api.get(f"/tunings/{search.pk}/effects").json()
    assert (few["effects"], few["fewest_configs"], len(few["coordinates"])) == ([], 12, 10)


def test_benchhub_ci_starts_a_search_once_waits_and_tells_the_answer(
    ci: Ci, admin: Member, stock: dict[str, Any], tmp_path: Path
) -> None:
    save_version(admin, Recipe, "limits", RECIPE)
    space, state, said = (tmp_path / name for name in ("space.yaml", "state.json", "answer.json"))
    space.write_text(YAML)
    wanted = (
        "tune", *NAMES, f"--space={space}", "--limit=latency_p99_ms<=50", "--runs=30", "--smallest",
        f"--state={state}", "--further-sut=sut-2", "--further-sut=sut-3", "--confirm-after=12",
    )  # fmt: skip
    for host in (*Host.objects.filter(name="sut-1"), *(ready_host(admin, name) for name in ("sut-2", "sut-3"))):
        known(host)
    starts = [ci(*wanted, "--no-wait") for _ in range(2)]
    tuning = Tuning.objects.get()
    assert [(one.returncode, one.stdout) for one in starts] == [(0, f"tuning:{tuning.pk}\n")] * 2
    assert [host.name for host in tuning.suts] == ["sut-1", "sut-2", "sut-3"]
    assert tuning.confirm_after_hours == 12
    assert (tuning.reduces, tuning.budget_runs, tuning.name) == (True, 30, "limits: the best configuration")
    Tuning.objects.update(state="finished", outcome="nothing_better", sentence="No setting is likely to beat it.")
    ended = ci(*wanted, f"--json={said}")
    space.write_text(YAML + OF_THE_SEARCH)
    whole = ("tune", *NAMES, f"--space={space}", "--no-wait")
    assert ci(*whole).returncode == 0
    by_file = Tuning.objects.latest("pk")
    assert (by_file.budget_runs, by_file.reduces, len(by_file.limits)) == (40, True, 2)
    assert "in the YAML or beside it" in ci(*whole, "--runs=30").stderr
    assert ended.returncode == 1, ended.stderr
    assert "nothing better" in ended.stdout
    assert json.loads(said.read_text())["finished"] is True
    assert ci("gate", f"tuning:{tuning.pk}", "--margin=4").returncode == 3
    refused = ci("tune", *NAMES, f"--space={space}", "--limit=p99<50")
    assert (refused.returncode, "METRIC<=VALUE" in refused.stderr) == (3, True)


def test_benchhub_ci_searches_and_runs_systems_of_several_hosts(
    ci: Ci, admin: Member, stock: dict[str, Any], tmp_path: Path
) -> None:
    system_of(admin, stock)
    (space := tmp_path / "space.yaml").write_text("parameters: [{name: swappiness, low: 0, high: 100}]")
    named = ("--application=shop", "--recipe=calm", *NAMES[2:])
    hosts = ("--member=database=db", "--member=app=app")
    for command in (("tune", f"--space={space}", "--no-wait"), ("trigger",)):
        made = ci(*command, *named, *hosts)
        assert made.returncode == 0, made.stderr
        drivers = Run.objects.latest("pk").drivers
        assert drivers is not None
        assert {role: host.name for role, host in drivers.members.items()} == {"database": "db", "app": "app"}
        lacking = ci(*command, *named, hosts[0])
        assert (lacking.returncode, "app" in lacking.stderr) == (3, True)
    wrong = ci("trigger", *named, "--member=db")
    assert (wrong.returncode, "--member reads key=value, not 'db'" in wrong.stderr) == (3, True)
    copied = ci("trigger", "--experiment=shop", *hosts)
    assert (copied.returncode, "leave out --member" in copied.stderr) == (3, True)
