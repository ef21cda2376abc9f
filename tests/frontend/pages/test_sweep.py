"""A sweep on New experiment: one variant per value of a parameter."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.html import escape

from experiments.asking.launching.copies import copy_experiment
from experiments.asking.launching.launch import rerun
from experiments.models import Experiment, Member, Recipe, Run, Series, Workload
from experiments.registry.documents.versions import save_version
from tests.experiments.asking.test_searches import RATED, load
from tests.experiments.conftest import WORKLOAD, admin, make_member, ready_host, stock, team
from tests.experiments.finished import finish_next, report, whole_run
from tests.frontend.flat import flat
from tests.frontend.pages.test_new_run import experiment_form, parts
from tests.frontend.pages.test_scaling import data
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "stock", "team"]


def swept(admin: Member, stock: dict[str, Any], **more: str) -> str:
    given = {"sweep": "nofile", "sweep_values": "2048 4096; 8192 4096", **more}
    form = experiment_form(stock, sweep_rows="1", **given)
    answer = signed_in(admin).post(address("new_experiment", admin.team), form)
    assert answer.status_code == 200
    return flat(answer.content.decode())


def test_a_sweep_makes_a_variant_of_the_baseline_per_value(admin: Member, stock: dict[str, Any]) -> None:
    page = swept(admin, stock)
    assert page.count('name="rows"') == 3
    for row, value in enumerate((2048, 4096, 8192)):
        assert f'name="v{row}-p_nofile" value="{value}"' in page
        assert f'value="nofile {value}"' in page
    assert '<input type="radio" name="baseline" value="0" checked>' in page
    assert not Experiment.objects.exists()


def test_a_sweep_over_server_hosts_makes_the_machine_a_factor(admin: Member, stock: dict[str, Any]) -> None:
    other = ready_host(admin, "sut-2", roles="sut")
    page = swept(admin, stock, sweep="sut", sweep_values="sut-1 sut-2", sweep_2="nofile", sweep_2_values="2048 4096")
    assert page.count('name="rows"') == 4
    assert 'value="server sut-2, nofile 4096"' in page
    assert page.count(f'<option value="{other.pk}" selected>') == 2
    unknown = swept(admin, stock, sweep="sut", sweep_values="sut-1 sut-9")
    assert unknown.count('name="rows"') == 2, "the variants stay as they were"
    assert "server sut-9: no server of the team has this name; there is: sut-1, sut-2." in unknown


def test_a_sweep_over_the_offered_rate_is_launched_and_gives_a_curve(admin: Member, stock: dict[str, Any]) -> None:
    workload = save_version(admin, Workload, "rated", WORKLOAD | RATED)
    form = experiment_form(stock, workload=str(workload.pk), repetitions="1", order="sequential")
    page = signed_in(admin).post(
        address("new_experiment", admin.team),
        form | {"sweep_rows": "1", "sweep": "offered_rate_rps", "sweep_values": "1000 2000"},
    )
    assert 'name="v1-offered_rate_rps" value="2000"' in page.content.decode()
    rows = {"v0-name": "rate 1000", "v0-offered_rate_rps": "1000", "v1-name": "rate 2000", "v1-p_nofile": ""}
    made = signed_in(admin).post(
        address("new_experiment", admin.team), form | rows | {"v1-offered_rate_rps": "2000", "launch": "1"}
    )
    assert made.status_code == 302, made.content.decode()
    experiment = Experiment.objects.get()
    assert [variant.offered_rate_rps for variant in experiment.variants.all()] == [1000, 2000]
    for rate_rps, p99_ms in ((1000, 12.0), (2000, 31.0)):
        run = finish_next(whole_run(load(rate_rps, p99_ms=p99_ms)))
        assert run.spec is not None
        assert run.spec["workload"]["driver"]["offered_rate_rps"] == rate_rps
    page = signed_in(admin).get(f"/t/perf/experiments/{experiment.pk}/")
    curve = data(page.content.decode(), "load-curve")
    assert [(point["offered"], point["x"], point["y"]) for point in curve["points"]] == [
        (1000, 1000, 12),
        (2000, 2000, 31),
    ]
    copied = copy_experiment(admin, experiment)
    assert [variant.offered_rate_rps for variant in copied.variants.all()] == [1000, 2000]


def test_two_parameters_are_swept_together_and_their_variants_are_launched(
    admin: Member, stock: dict[str, Any]
) -> None:
    two = {"sweep_values": "2048 4096", "sweep_2": "concurrency", "sweep_2_values": "8 32"}
    page = swept(admin, stock, **two)
    assert page.count('name="rows"') == 4
    assert 'value="nofile 4096, concurrency 32"' in page
    rows: dict[str, Any] = {"rows": ["0", "1", "2", "3"]}
    for row, (nofile, count) in enumerate(((2048, 8), (2048, 32), (4096, 8), (4096, 32))):
        assert f'name="v{row}-p_nofile" value="{nofile}"' in page
        assert f'name="v{row}-concurrency" value="{count}"' in page
        rows |= parts(stock, f"v{row}-")
        rows |= {f"v{row}-name": f"{nofile}, {count}", f"v{row}-p_nofile": nofile, f"v{row}-concurrency": count}
    form = experiment_form(stock, repetitions="1", order="sequential") | rows
    shown = signed_in(admin).post(address("experiment_preview", admin.team), form).content.decode()
    assert "wrk -t2 -c8 " in shown
    assert "&quot;concurrency&quot;: 32" in shown
    made = signed_in(admin).post(address("new_experiment", admin.team), form | {"launch": "1"})
    assert made.status_code == 302, made.content.decode()
    experiment = Experiment.objects.get()
    for count, p99_ms in ((8, 12.0), (32, 31.0)):
        run = finish_next(whole_run(report(100.0 * count, connections=count, latency_p99_ms=p99_ms)))
        assert run.spec is not None
        assert run.spec["workload"]["driver"]["connections"] == run.spec["workload"]["own_concurrency"] == count
    assert not Series.objects.exists()
    page = signed_in(admin).get(f"/t/perf/experiments/{experiment.pk}/").content.decode()
    assert '<span class="chip">32 connections</span>' in page
    curve = data(page, "load-curve")
    assert [(point["line"], point["offered"]) for point in curve["points"]] == [("nofile 2048", 8), ("nofile 2048", 32)]
    assert rerun(admin, run).spec == run.spec
    wanted = [8, 32, 8, 32]
    assert [variant.concurrency for variant in copy_experiment(admin, experiment).variants.all()] == wanted
    again = signed_in(admin).get(f"/t/perf/experiments/new/?from={experiment.pk}").content.decode()
    assert 'name="v1-concurrency" value="32"' in again


def test_too_many_pairs_are_said(admin: Member, stock: dict[str, Any]) -> None:
    many = " ".join(str(8 * count) for count in range(1, 21))
    page = swept(admin, stock, sweep_2="concurrency", sweep_2_values=many)
    assert page.count('name="rows"') == 50
    assert "These are 60 variants; an experiment has at most 50" in page


@pytest.mark.parametrize(
    ("driver", "count", "words"),
    [
        (WORKLOAD["driver"], "33", "connections (33) must be a multiple of threads (2)"),
        ({"kind": "vegeta", "offered_rate_rps": 100}, "32", "vegeta has no number of connections or users"),
    ],
    ids=["threads", "no number"],
)
def test_connections_that_the_load_tool_cannot_have_are_refused(
    admin: Member, stock: dict[str, Any], driver: Any, count: str, words: str
) -> None:
    workload = save_version(admin, Workload, "other", WORKLOAD | {"driver": driver})
    form = experiment_form(stock, workload=str(workload.pk), **{"v1-concurrency": count, "launch": "1"})
    refused = signed_in(admin).post(address("new_experiment", admin.team), form)
    assert refused.status_code == 422
    assert words in refused.content.decode()


def test_a_load_tool_without_a_rate_is_refused(admin: Member, stock: dict[str, Any]) -> None:
    form = experiment_form(stock, **{"v1-offered_rate_rps": "2000", "launch": "1"})
    refused = signed_in(admin).post(address("new_experiment", admin.team), form)
    assert refused.status_code == 422
    assert "wrk cannot offer a rate of requests" in refused.content.decode()


@pytest.mark.parametrize("change", [{"sweep": "colour"}, {"sweep_values": " "}])
def test_a_sweep_over_nothing_changes_nothing(admin: Member, stock: dict[str, Any], change: dict[str, str]) -> None:
    page = swept(admin, stock, **change)
    assert page.count('name="rows"') == 2
    assert 'value="few files"' in page


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("2048, 4096,", ("2048", "4096")),
        ("2048,4096", ()),
        ("2048 10k", ()),
        ("2048 12", ()),
        ("2048 02048 4096", ("2048", "4096")),
        ("'2048", ()),
    ],
)
def test_every_value_of_a_sweep_is_checked_before_a_variant_is_named_after_it(
    admin: Member, stock: dict[str, Any], typed: str, values: tuple[str, ...]
) -> None:
    page = swept(admin, stock, sweep_values=typed)
    named = [f'value="nofile {value}"' in page for value in values]
    assert all(named)
    assert page.count('name="rows"') == (len(values) or 2)
    assert ("No variant was made." in page) == (not values)
    assert (f'value="{escape(typed)}"' in page) == (not values), "what was typed stays where it is wrong"


def test_values_of_a_sweep_that_are_no_variants_yet_are_not_launched(admin: Member, stock: dict[str, Any]) -> None:
    form = experiment_form(stock, sweep="nofile", sweep_values="2048 4096", launch="1")
    refused = signed_in(admin).post(address("new_experiment", admin.team), form)
    assert refused.status_code == 422
    assert "Press “Make the variants” first" in refused.content.decode()
    assert not Experiment.objects.exists()


@pytest.mark.parametrize(
    ("name", "refused"), [("nofile 4096", True), ("nofile 2048", False), ("few files", False), ("nofile 4k", False)]
)
def test_a_variant_is_not_named_after_a_value_that_it_does_not_run_with(
    admin: Member, stock: dict[str, Any], name: str, refused: bool
) -> None:
    answer = signed_in(admin).post(
        address("new_experiment", admin.team), experiment_form(stock, draft="1", **{"v1-name": name})
    )
    assert (answer.status_code == 422) == refused
    if refused:
        assert "The name says nofile 4096, but nofile is 2048: change one of them." in answer.content.decode()


def test_numbers_are_typed_as_text_so_that_a_browser_sends_what_is_wrong_with_them(
    admin: Member, stock: dict[str, Any]
) -> None:
    page = signed_in(admin).get(address("new_experiment", admin.team)).content.decode()
    assert 'type="number"' not in page
    assert page.count('inputmode="decimal"') > 5


TEXTS = {
    "parameters": {
        "save": {"type": "str", "default": "900 1"},
        "dir": {"type": "str"},
        "more": {"type": "str", "default": ""},
    },
    "steps": [{"kind": "environment", "variables": {"SAVE": "${save}", "DIR": "${dir}${more}"}}],
}


def test_a_text_parameter_may_be_empty(admin: Member, stock: dict[str, Any]) -> None:
    recipe = save_version(admin, Recipe, "texts", TEXTS)
    client = signed_in(admin)
    form = parts(stock, workload=str(stock["workload"].pk), recipe=str(recipe.pk), p_save='""', p_dir='""')
    made = client.post(address("new_run", admin.team), form)
    assert made.status_code == 302, made.content.decode()
    run = Run.objects.get()
    assert run.spec is not None
    assert run.spec["recipe"]["parameters"] == {"save": "", "dir": "", "more": ""}
    copied = flat(client.get(f"{address('new_run', admin.team)}?from=1").content.decode())
    assert copied.count('value="&quot;&quot;"') == 3
    page = swept(admin, stock | {"recipe": recipe}, sweep="save", sweep_values='"" "900 1", "60 10000"')
    assert [f'value="save {text}"' in page for text in ("&quot;&quot;", "900 1", "60 10000")] == [True] * 3
    editor = flat(client.get(f"/t/perf/recipes/{recipe.pk}/edit/").content.decode())
    assert "900 1" in editor
    assert editor.count('value="&quot;&quot;"') == 1
