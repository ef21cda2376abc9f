"""The pages of tuning searches: a form without YAML, a live page, and the answer with its buttons."""

from __future__ import annotations

import copy
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments.asking.launching.choices import Choice
from experiments.asking.tunings.live import start_tuning
from experiments.asking.tunings.plan import LimitWanted, TuningPlan
from experiments.models import Application, Host, Member, Recipe, Run, Tuning, TuningTrial
from experiments.registry.documents.versions import save_version
from tests.experiments.asking.test_tuning_suts import known
from tests.experiments.asking.test_tunings import RECIPE, SPACE
from tests.experiments.conftest import ready_host
from tests.experiments.finished import finish_next, report, whole_run
from tests.experiments.systems import system_of
from tests.frontend.flat import flat
from tests.frontend.tuned import tuned


@pytest.fixture
def choice(admin: Member, stock: dict[str, Any]) -> Choice:
    return Choice(**stock | {"recipe": save_version(admin, Recipe, "limits", RECIPE)})


def address(name: str, team: Any, *more: Any) -> str:
    return reverse(name, args=[team.slug, *more])


def typed(choice: Choice) -> dict[str, Any]:
    """What a person types."""
    return {
        "name": "Faster?",
        "application": choice.application.pk,
        "recipe": choice.recipe.pk,
        "workload": choice.workload.pk,
        "sut": choice.sut.pk,
        "drivers": [host.pk for host in choice.drivers],
        "s_nofile": "on",
        "l_nofile": "1024",
        "h_nofile": "65536",
        "g_nofile": "on",
        "s_mode": "on",
        "metric": "throughput_rps",
        "limit1_metric": "latency_p99_ms",
        "limit1_side": "at_most",
        "limit1_value": "50",
        "margin_pct": "3",
        "budget_runs": "30",
        "warm": "on",
        "priority": "normal",
        "forbidden": "mode = fast and nofile > 60000",
    }


def test_a_search_is_started_by_the_form_and_followed_on_its_page(
    browser: Client, admin: Member, choice: Choice
) -> None:
    fields = browser.get(address("tuning_parameters", admin.team), {"recipe": choice.recipe.pk}).content.decode()
    assert 'name="l_nofile"' in fields
    assert 'name="c_mode"' in fields
    answer = browser.post(address("new_tuning", admin.team), typed(choice))
    tuning = Tuning.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, address("tuning", admin.team, tuning.pk))
    assert tuning.limits == [{"metric": "latency_p99_ms", "at_most": 50.0, "at_least": None}]
    assert [one["name"] for one in tuning.space["parameters"]] == ["mode", "nofile"]
    finish_next(whole_run(report(1000.0)))
    finish_next(whole_run(report(2000.0, errors_connect=900)))
    page = flat(browser.get(address("tuning", admin.team, tuning.pk)).content.decode())
    for said in ("1 crashed, 0 refused", "the default, to compare with", "28 runs to go", "spread over the space"):
        assert said in page
    assert re.search(r"<h2>Trials</h2>.{,150}<strong>selected, optimistic</strong>: no row is a claim", page)
    part = browser.get(address("tuning", admin.team, tuning.pk), {"part": "answer"})
    assert part.headers["HX-Trigger"] == "charts-changed"
    trials = browser.get(address("tuning_chart", admin.team, tuning.pk)).json()["trials"]
    assert [one["figure"] for one in trials] == [1000.0, None, None]
    assert "Faster?" in browser.get(address("tunings", admin.team)).content.decode()
    again = browser.get(address("new_tuning", admin.team), {"from": tuning.pk}).content.decode()
    assert "mode = fast and nofile &gt; 60000" in again


def test_errors_may_be_a_limit_and_no_objective(browser: Client, admin: Member, choice: Choice) -> None:
    page = browser.get(address("new_tuning", admin.team)).content.decode()
    chosen = {
        name: re.search(rf'<select name="{name}".*?</select>', page, re.DOTALL) for name in ("metric", "limit1_metric")
    }
    assert ['value="errors_total"' in one[0] for one in chosen.values() if one] == [False, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"l_nofile": "9000"}, "must be in what may be tried: nofile"),
        ({"s_nofile": "", "s_mode": ""}, "Choose at least one parameter"),
        ({"limit1_value": ""}, "Give the value of this limit."),
        ({"c_mode": "plain, odd"}, "not one of"),
        ({"c_mode": "plain, fast#1"}, "Put a value with # in it in quotation marks"),
        ({"forbidden": "quick"}, "is not PARAMETER"),
        ({"budget_hours": "0.02"}, "hours or more"),
    ],
)
def test_the_form_says_at_the_field_what_does_not_fit(
    browser: Client, admin: Member, choice: Choice, change: dict[str, str], said: str
) -> None:
    answer = browser.post(address("new_tuning", admin.team), typed(choice) | change)
    assert answer.status_code == 422
    assert said in flat(answer.content.decode())
    assert not Run.objects.exists()


def test_several_servers_and_a_later_confirmation_are_chosen_in_the_form_and_shown(
    browser: Client, admin: Member, choice: Choice
) -> None:
    hosts = [known(choice.sut), *(known(ready_host(admin, name)) for name in ("sut-2", "sut-3"))]
    given = {"further_suts": [hosts[1].pk], "confirm_sut": hosts[2].pk, "confirm_after_hours": "12"}
    refused = browser.post(address("new_tuning", admin.team), typed(choice) | given | {"confirm_sut": hosts[0].pk})
    assert refused.status_code == 422
    assert "sut-1 has a part in this search already" in flat(refused.content.decode())
    browser.post(address("new_tuning", admin.team), typed(choice) | given)
    tuning = Tuning.objects.get()
    Host.objects.filter(name="sut-2").update(state="unreachable")
    page = flat(browser.get(address("tuning", admin.team, tuning.pk)).content.decode())
    for said in (
        "sut-1, sut-2 (unreachable), sut-3 (confirms) ← driver-1",
        "12.0 hours after the search",
        ", on sut-1",
    ):
        assert said in page
    again = browser.get(address("new_tuning", admin.team), {"from": tuning.pk}).content.decode()
    assert f'<option value="{hosts[1].pk}" selected>sut-2 (unreachable)' in again
    Tuning.objects.update(paused=True, confirms_at="2026-02-03T10:00Z")
    page = flat(browser.get(address("tuning", admin.team, tuning.pk)).content.decode())
    assert "It is confirmed from 2026-02-03 10:00 on, or when you let it go on." in page
    assert "Go on" in page


def test_pausing_going_on_more_budget_and_the_end_are_buttons(browser: Client, admin: Member, choice: Choice) -> None:
    limits = [LimitWanted("errors_total", at_most=0)]
    tuning = start_tuning(admin, TuningPlan("Faster?", choice, SPACE, limits=limits, budget_runs=30))

    def press(action: str) -> str:
        return flat(browser.post(address("tuning_action", admin.team, tuning.pk, action), follow=True).content.decode())

    assert "Paused." in press("pause")
    assert "Only a tuning search that is running can be paused." in press("pause")
    assert "It goes on." in press("resume")
    browser.post(address("tuning_budget", admin.team, tuning.pk), {"runs": "12"})
    tuning.refresh_from_db()
    assert tuning.budget_runs == 42
    said = browser.post(address("tuning_budget", admin.team, tuning.pk), {"runs": "many"}, follow=True)
    assert "is no number" in flat(said.content.decode())
    for mixture, told in (("nproc > 8000", "Nothing more is tried there."), ("nproc > x", "not of type int")):
        answer = browser.post(address("tuning_region", admin.team, tuning.pk), {"mixture": mixture}, follow=True)
        assert told in flat(answer.content.decode())
    assert "nproc &gt; 8000" in flat(answer.content.decode())
    assert "of a configuration that is confirmed to be better" in press("smallest")
    assert "Cancelled." in press("cancel")
    over = browser.get(address("tuning", admin.team, tuning.pk), {"part": "answer"})
    assert (over.headers["HX-Refresh"], over.content) == ("true", b"")  # its buttons have to go, too
    assert "neither paused nor stopped" in press("resume")
    Tuning.objects.update(state="stopped", sentence="The newest runs were all invalid.")
    page = flat(browser.get(address("tuning", admin.team, tuning.pk)).content.decode())
    assert "Go on" in page
    assert "More budget" in page
    assert "It goes on." in press("resume")


@pytest.mark.parametrize(
    ("hours", "runs", "more_runs", "more_hours", "told"),
    [(2.2, 60, "0", "0.76", "1.79 more hours"), (20, 30, "14", "0", "27 more runs")],
)
def test_more_budget_is_filled_in_with_what_the_search_lacks(
    browser: Client, admin: Member, choice: Choice, hours: float, runs: int, more_runs: str, more_hours: str, told: str
) -> None:
    tuning = start_tuning(admin, TuningPlan("Faster?", choice, SPACE, budget_runs=runs, budget_hours=9))
    tuning.trials.all().delete()
    same = {"purpose": "explore", "config": tuning.default, "result": "ok", "figure": 1e3, "duration_s": 240.0}
    TuningTrial.objects.bulk_create(TuningTrial(tuning=tuning, position=n, **same) for n in range(29))
    Tuning.objects.update(state="finished", outcome="budget_too_small", more_runs=14, budget_hours=hours)
    page = flat(browser.get(address("tuning", admin.team, tuning.pk)).content.decode())
    assert re.search(rf'id="more-runs"[^>]* value="{more_runs}"', page)
    assert re.search(rf'id="more-hours"[^>]* value="{more_hours}"', page)
    assert f"With {told} it looks for other configurations, too" in page
    said = browser.post(address("tuning_budget", admin.team, tuning.pk), {"runs": "2"}, follow=True)
    assert ("Its hours suffice for 33 runs" in flat(said.content.decode())) == (hours == 2.2)


def test_the_answer_has_its_interval_and_becomes_a_version_of_the_recipe(
    browser: Client, admin: Member, choice: Choice
) -> None:
    tuning = start_tuning(admin, TuningPlan("Faster?", choice, SPACE, budget_runs=30))
    Tuning.objects.filter(pk=tuning.pk).update(
        state="finished", outcome="better", sentence="mode=fast is better than the default by 24.0 %.",
        winner={**tuning.default, "mode": "fast"}, gain_ratio=0.24, low_ratio=0.22, high_ratio=0.26,
    )  # fmt: skip
    page = flat(browser.get(address("tuning", admin.team, tuning.pk)).content.decode())
    assert "better than the default by 24.0 %" in page
    assert re.search(r"Finished\s*</span>", page)
    assert re.search(r"Find the smallest recipe\s*</button>\s*<span[^>]*>at most \d+ runs<", page)
    assert "+22.0 %" in flat(browser.get(address("tunings", admin.team)).content.decode())
    browser.post(address("tuning_recipe", admin.team, tuning.pk))
    made = Recipe.objects.filter(name="limits").latest("version")
    assert made.body["parameters"]["mode"]["default"] == "fast"
    assert made.note.startswith(f"Tuning search {tuning.pk}: mode=fast.")
    assert str(made) in flat(browser.get(address("tuning", admin.team, tuning.pk)).content.decode())
    Tuning.objects.update(smaller_recipe=None)
    later = save_version(admin, Recipe, "limits", {**RECIPE, "steps": []})
    page = flat(browser.get(address("tuning", admin.team, tuning.pk)).content.decode())
    assert re.search(rf">{later}</a>\s*came after limits v2, which was searched", page)
    said = browser.post(address("tuning_recipe", admin.team, tuning.pk), follow=True)
    assert "what changed meanwhile is not in it" in flat(said.content.decode())
    (shown,) = re.findall(r'name="without_version" value="(\d+)"', page)
    browser.post(address("tuning_recipe", admin.team, tuning.pk), {"without_version": shown})
    assert "Made of version 2, without what" in Recipe.objects.filter(name="limits").latest("version").note


def test_the_gain_stays_on_the_page_while_the_smallest_recipe_is_looked_for_and_when_that_stops(
    browser: Client, admin: Member, choice: Choice
) -> None:
    tuning = start_tuning(admin, TuningPlan("Faster?", choice, SPACE, metric="latency_p99_ms", budget_runs=30))
    winner = {**tuning.default, "mode": "fast"}
    alone = {
        "parameter": "mode",
        "may_go": True,
        "sentence": "mode may go back.",
        "estimate_pct": 0.1,
        "interval_pct": None,
    }
    page = address("tuning", admin.team, tuning.pk)
    Tuning.objects.update(outcome="better", winner=winner, gain_ratio=3.0, low_ratio=0.01, high_ratio=4.0)
    said = "mode=fast is better than the default: it lowers latency_p99_ms by 75.0 %, 95 % interval 1.0 to 80.0 %"
    shown = flat(browser.get(page).content.decode())
    assert said in shown
    assert "more than the margin of 3 % is not certain" in shown
    assert "Make it a version" not in shown
    Tuning.objects.update(state="stopped", sentence="After run #9 a host could not be proven to be as before.")
    shown = flat(browser.get(page).content.decode())
    assert said in shown
    assert re.search(r'note-warn"\s*>.*After run #9', shown)
    assert "+75.0 %" in flat(browser.get(address("tunings", admin.team)).content.decode())
    browser.post(address("tuning_recipe", admin.team, tuning.pk))
    together = {"sentence": "Together they may go.", "estimate_pct": 0.2, "interval_pct": [-0.4, 0.9]}
    smallest = {"config": tuning.default, "dropped": ["mode"], "each": [alone], "together": together}
    Tuning.objects.update(state="finished", sentence=f"{said}.", smallest=smallest)
    shown = flat(browser.get(page).content.decode())
    assert "Together they may go." in shown
    assert "Without mode it was measured beside that configuration, not beside the default: -0.4 … +0.9 %." in shown
    assert "before the smallest recipe was known" in shown
    browser.post(address("tuning_recipe", admin.team, tuning.pk))
    assert "Make it a version" not in flat(browser.get(page).content.decode())


def test_trials_that_break_a_limit_say_so(browser: Client, admin: Member, stock: dict[str, Any]) -> None:
    search = tuned(admin, stock, 30)
    over = [one for one in search.trials.filter(result="ok") if one.bounded[0] > 50]
    page = flat(browser.get(address("tuning", admin.team, search.pk)).content.decode())
    assert over
    assert page.count("Breaks a limit") == len(over)
    assert page.count("<strong>over</strong>") == len(over)


def test_a_search_that_is_copied_keeps_every_limit_and_the_order_of_conditions(
    browser: Client, admin: Member, choice: Choice
) -> None:
    metrics = ("latency_p99_ms", "latency_p90_ms", "latency_p50_ms", "latency_mean_ms", "latency_max_ms")
    limits = [LimitWanted(metric, at_most=50.0 + place) for place, metric in enumerate(metrics)]
    plan = TuningPlan("Faster?", choice, SPACE, limits=limits, budget_runs=30, priority=Run.Priority.LOW)
    tuning = start_tuning(admin, plan)
    page = browser.get(address("new_tuning", admin.team), {"from": tuning.pk}).content.decode()
    assert re.search(r'name="limit5_value"[^>]*value="54', page)
    assert re.search(r'value="low" selected', page)
    sent = typed(choice) | {
        "w_mode": "",
        "s_nproc": "on",
        "l_nproc": "1024",
        "h_nproc": "8192",
        "w_nproc": "mode = fast",
    }
    sent |= {"w_nofile": "nproc = 2048, 4096", "forbidden": "", "c_nproc": "", "name": "Chain"}
    sent |= {f"limit{n}_{part}": value for n in (4, 5) for part, value in (("metric", metrics[n - 1]), ("value", "9"))}
    assert browser.post(address("new_tuning", admin.team), sent).status_code == 302
    made = Tuning.objects.get(name="Chain")
    assert [one["name"] for one in made.space["parameters"]] == ["mode", "nproc", "nofile"]
    assert [one["metric"] for one in made.limits] == ["latency_p99_ms", *metrics[3:]]


def test_configurations_to_try_first_and_a_cold_start_are_chosen_in_the_form_and_stay_in_a_copy(
    browser: Client, admin: Member, choice: Choice
) -> None:
    known = start_tuning(admin, TuningPlan("Known", choice, SPACE, budget_runs=30))
    winner = {**known.default, "mode": "fast", "nofile": 9000}
    Tuning.objects.update(state="finished", outcome="better", winner=winner)
    sent = typed(choice) | {"starts": "nofile = 2048, mode = fast # last year\n\nnofile = 8192\n", "forbidden": ""}
    own = [
        {"config": {"nofile": 2048, "mode": "fast"}, "why": "last year"},
        {"config": {"nofile": 8192}, "why": ""},
    ]
    shown = "mode = fast, nofile = 2048 # last year\nnofile = 8192</textarea>"
    for is_warm in (True, False):
        answer = browser.post(address("new_tuning", admin.team), sent if is_warm else sent | {"warm": ""})
        assert answer.status_code == 302
        made = Tuning.objects.latest("pk")
        starts = made.space["starts"]
        assert (made.warm, starts[:2]) == (is_warm, own)
        assert [one["known"] for one in starts[2:]] == [True] * is_warm
        again = browser.get(address("new_tuning", admin.team), {"from": made.pk}).content.decode()
        assert shown in again
        assert bool(re.search(r'name="warm"[^>]*checked', again)) == is_warm
    for line, said in (
        ("nofile", "is not PARAMETER = VALUE"),
        ("nofile = x", "nofile: &#x27;x&#x27; is not of type int"),
        ("nofile = 9", "outside of what may be tried"),
        ("nproc = 9", "it is not searched"),
        ("# none", "at least 1 item"),
        ("nofile = 2048, mode = fast, nofile = 8192", "nofile is given twice"),
        ("mode = fast,slow", "&#x27;slow&#x27; is not PARAMETER = VALUE"),
        ('"mode = fast', "&#x27;&quot;mode = fast&#x27; is not PARAMETER = VALUE"),
    ):
        refused = browser.post(address("new_tuning", admin.team), sent | {"starts": line})
        assert refused.status_code == 422
        assert re.search(rf'id_starts_error">\s*<li>[^<]*{re.escape(said)}', refused.content.decode()), line


def test_a_configuration_to_try_first_may_have_commas_and_comment_signs_in_its_values(
    browser: Client, admin: Member, stock: dict[str, Any]
) -> None:
    logged, quoted = "gc*,safepoint=info", '"x" # y'
    body: dict[str, Any] = copy.deepcopy(RECIPE)
    body["parameters"]["mode"]["choices"] = ["plain", logged, quoted]
    recipe = save_version(admin, Recipe, "limits", body)
    choice = Choice(**stock | {"recipe": recipe})
    starts = [
        {"config": {"mode": logged, "nofile": 2048}, "why": "of # 7"},
        {"config": {"nofile": 2048, "mode": quoted}, "why": ""},
    ]
    searched = [
        {**one, "choices": ["plain", logged, quoted]} if one["name"] == "mode" else one for one in SPACE["parameters"]
    ]
    space = {"parameters": searched, "starts": starts}
    made = start_tuning(admin, TuningPlan("Logs", choice, space, budget_runs=30))
    page = browser.get(address("new_tuning", admin.team), {"from": made.pk}).content.decode()
    (shown,) = re.findall(r'<textarea name="starts"[^>]*>\s*(.*?)</textarea>', page, re.DOTALL)
    (choices,) = re.findall(r'<input[^>]*name="c_mode"[^>]*value="([^"]*)"', page)
    sent = typed(choice) | {"starts": unescape(shown), "forbidden": "", "c_mode": unescape(choices)}
    assert browser.post(address("new_tuning", admin.team), sent).status_code == 302
    copied = Tuning.objects.latest("pk").space
    assert copied["starts"] == starts
    assert {tuple(one["choices"]) for one in copied["parameters"] if one["name"] == "mode"} == {
        ("plain", logged, quoted)
    }


def test_limits_on_figures_of_members_are_chosen_in_the_form_and_stay_in_a_copy(
    browser: Client, admin: Member, stock: dict[str, Any]
) -> None:
    parts = system_of(admin, stock)
    members = {f"m_{role}": host.pk for role, host in parts.pop("members").items()}
    sent = {name: getattr(parts[name], "pk", None) for name in ("application", "recipe", "workload", "sut")}
    sent |= {"drivers": [host.pk for host in parts["drivers"]], "name": "Calm?", "margin_pct": "3", "budget_runs": "30"}
    sent |= {"s_swappiness": "on", "l_swappiness": "0", "h_swappiness": "100", "metric": "throughput_rps"}
    sent |= {"limit1_metric": "database.memory_used_bytes", "limit1_value": "4e9", "priority": "normal"} | members
    offered = browser.get(address("new_tuning", admin.team)).content.decode()
    assert '<option value="database.memory_used_bytes">Memory in use of database' in offered
    assert browser.post(address("new_tuning", admin.team), sent).status_code == 302
    tuning = Tuning.objects.get()
    Application.objects.filter(pk=tuning.application_id).update(archived=True)
    again = browser.get(address("new_tuning", admin.team), {"from": tuning.pk}).content.decode()
    assert re.search(r'<option value="database.memory_used_bytes" selected>', again)
    for host in tuning.drivers.members.values():
        assert f'<option value="{host.pk}" selected>{host.name}' in again
    other = browser.post(address("new_tuning", admin.team), sent | {"limit1_metric": "cache.cpu_ratio"})
    assert (other.status_code, "no metric &#x27;cache.cpu_ratio&#x27;" in other.content.decode()) == (422, True)


def test_each_parameter_alone_is_shown_as_the_model_has_it_and_not_of_too_few_trials(
    browser: Client, admin: Member, stock: dict[str, Any]
) -> None:
    search = tuned(admin, stock, 60)
    page = browser.get(address("tuning_effects", admin.team, search.pk)).content.decode()
    assert page.count("<svg") == 12
    seen = search.trials.exclude(result="").count()
    assert f"?seen={seen}" in page
    same = browser.get(address("tuning_effects", admin.team, search.pk), {"seen": seen})
    assert (same.status_code, same.content) == (204, b"")  # nothing is worked out again, and nothing is closed
    assert page.index("<h3>workers</h3>") < page.index("<h3>part_1</h3>")
    assert "Serial: 0.0 % [0.0 %, 0.0 %]" in page
    search.trials.filter(position__gt=9).delete()
    assert "Too few configurations" in browser.get(address("tuning_effects", admin.team, search.pk)).content.decode()
