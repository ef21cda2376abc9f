"""New run and New experiment: nothing is lost on an error, and what is launched is what was chosen."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest
from django.utils.html import strip_tags
from lxml import html

from agents.plan import build_plan
from agents.running.outfit import HostFinding
from agents.spec import RunSpec
from experiments.models import (
    DryRun,
    Experiment,
    HardwareProfile,
    Host,
    Machine,
    Member,
    Recipe,
    Role,
    Run,
    Team,
    Workload,
)
from experiments.registry.documents.versions import save_version
from experiments.registry.hosts.inventory import check_state, grant
from tests.experiments.conftest import MakeMember, admin, make_member, stock, team
from tests.frontend.flat import flat
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "stock", "team"]


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are hints; these tests look at what PostgreSQL holds."""
    monkeypatch.setattr("experiments.registry.workers.outbox.hint", lambda *_given: None)


def parts(stock: dict[str, Any], prefix: str = "", **more: str) -> dict[str, Any]:
    chosen: dict[str, Any] = {name: str(stock[name].pk) for name in ("application", "recipe", "sut")}
    chosen["drivers"] = [str(host.pk) for host in stock["drivers"]]
    return {f"{prefix}{name}": value for name, value in chosen.items()} | more


def run_form(stock: dict[str, Any], **more: Any) -> dict[str, Any]:
    return parts(stock, workload=str(stock["workload"].pk)) | more


def experiment_form(stock: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": "Files",
        "question": "Do more open files help?",
        "workload": str(stock["workload"].pk),
        "repetitions": "2",
        "order": "blocks",
        "primary_metric": "throughput_rps",
        "margin_pct": "5",
        "rows": ["0", "1"],
        "baseline": "0",
        **parts(stock, "v0-"),
        "v0-name": "default",
        **parts(stock, "v1-"),
        "v1-name": "few files",
        "v1-p_nofile": "2048",
        **more,
    }


def test_a_run_is_launched_with_its_parameters_labels_and_tags(admin: Member, stock: dict[str, Any]) -> None:
    form = run_form(stock, p_nofile="4096", labels="commit=4f2c\nbranch=main", tags="night, arm", notes="first")
    answer = signed_in(admin).post(address("new_run", admin.team), form)
    run = Run.objects.get()
    assert run.spec is not None
    assert answer.headers["Location"] == address("run", admin.team, run.number)
    assert run.spec["recipe"]["parameters"] == {"nofile": 4096}
    assert (run.labels, run.tags, run.notes) == ({"commit": "4f2c", "branch": "main"}, ["night", "arm"], "first")


def test_a_run_and_the_twins_of_an_experiment_are_profiled_and_marked(admin: Member, stock: dict[str, Any]) -> None:
    client = signed_in(admin)
    client.post(address("new_run", admin.team), run_form(stock, profilers=["async-profiler", "topdown"]))
    run = Run.objects.get()
    assert (run.spec or {})["profilers"] == ["async-profiler", "topdown"]
    assert (
        '<span class="chip" title="It counts in no verdict' in client.get(address("runs", admin.team)).content.decode()
    )
    copied = client.get(address("new_run", admin.team) + f"?from={run.number}").content.decode()
    assert re.search(r'<option value="topdown" selected', copied)
    client.post(address("new_experiment", admin.team), experiment_form(stock, profilers=["jfr"]))
    assert Counter(Run.objects.exclude(pk=run.pk).values_list("profiled", flat=True)) == {True: 4, False: 4}
    refused = client.post(address("new_run", admin.team), run_form(stock, profilers=["py-spy"]))
    assert (refused.status_code, Run.objects.count()) == (422, 9)
    assert "py-spy profiles Python servers" in refused.content.decode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"p_nofile": "12"}, "Must be at least 1024"),
        ({"p_nofile": "many"}, "whole number"),
        ({"labels": "no equals sign"}, "write key=value"),
        ({"application": ""}, "This field is required"),
        ({"sut": "999999"}, "not one of the available choices"),
        ({"tags": "x" * 61}, "at most 60 characters"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_typed_is_lost(
    admin: Member, stock: dict[str, Any], changes: dict[str, str], words: str
) -> None:
    answer = signed_in(admin).post(address("new_run", admin.team), run_form(stock, notes="keep me") | changes)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert words in text
    assert "keep me" in text
    assert Run.objects.count() == 0


def test_a_host_without_an_approved_key_is_refused_at_its_field(admin: Member, stock: dict[str, Any]) -> None:
    Host.objects.filter(pk=stock["sut"].pk).update(host_key="")
    answer = signed_in(admin).post(address("new_run", admin.team), run_form(stock))
    assert answer.status_code == 422
    assert "is not approved yet" in answer.context["form"].errors["sut"][0]


def test_a_launcher_without_a_grant_is_told_whom_to_ask(
    admin: Member, team: Team, stock: dict[str, Any], make_member: MakeMember
) -> None:
    launcher = make_member(team, Role.LAUNCHER)
    client = signed_in(launcher)
    refused = client.post(address("new_run", team), run_form(stock))
    assert refused.status_code == 422
    assert "ask an admin" in refused.content.decode()
    for host in (stock["sut"], stock["drivers"][0]):
        grant(admin, host, launcher)
    assert client.post(address("new_run", team), run_form(stock)).status_code == 302


def test_a_copied_run_fills_the_form(admin: Member, stock: dict[str, Any]) -> None:
    client = signed_in(admin)
    client.post(address("new_run", admin.team), run_form(stock, p_nofile="4096", labels="commit=4f2c"))
    clone = f"{address('new_run', admin.team)}?from=1"
    assert f'href="{clone}"' in client.get(address("run", admin.team, 1)).content.decode()
    form = client.get(clone).context["form"]
    assert form.initial["p_nofile"] == "4096"
    assert 'value="4096"' in str(form["p_nofile"])
    assert "commit=4f2c" in str(form["labels"])


def test_the_preview_shows_checks_plan_estimate_and_an_api_call_that_means_the_same(
    admin: Member, stock: dict[str, Any]
) -> None:
    answer = signed_in(admin).post(address("run_preview", admin.team), run_form(stock, p_nofile="4096"))
    text = answer.content.decode()
    assert "sut-1 (SUT) is ready and free." in text
    assert "wrk -t2 -c16" in text
    assert "no run before it on its hosts" in text
    words = shlex.split(answer.context["curl"])
    body = json.loads(words[words.index("-d") + 1])
    assert body == {
        "application": "tomcat@1",
        "recipe": "limits@1",
        "workload": "home page@1",
        "sut": "sut-1",
        "drivers": ["driver-1"],
        "parameters": {"nofile": 4096},
    }


def test_the_preview_says_what_is_missing(admin: Member, stock: dict[str, Any]) -> None:
    answer = signed_in(admin).post(address("run_preview", admin.team), run_form(stock) | {"workload": ""})
    assert answer.status_code == 200
    assert "Workload" in answer.content.decode()


@pytest.mark.parametrize("page", ["new_run", "new_experiment", "new_search", "new_bisection", "new_tuning"])
def test_a_form_says_what_the_team_has_none_of(admin: Member, stock: dict[str, Any], page: str) -> None:
    def note() -> str:
        html = signed_in(admin).get(address(page, admin.team)).content.decode()
        return strip_tags(flat(html).partition("Before the first run you need: ")[2].partition("</div>")[0]).strip()

    assert note() == ""
    Host.objects.filter(pk__in=[host.pk for host in stock["drivers"]]).update(roles=Host.Roles.SUT)
    assert note() == "a host with the role driver."
    Host.objects.all().delete()
    Workload.objects.all().delete()
    assert note() == "a workload, a host."


def test_the_preview_warns_of_shared_cpus_on_one_machine(admin: Member, stock: dict[str, Any]) -> None:
    from experiments.models import HardwareProfile

    facts = {"cpu.online": "0-3", "cpu.offline": ""}
    profile = HardwareProfile.objects.create(team=admin.team, digest="four", facts=facts)
    Host.objects.filter(pk__in=[stock["sut"].pk, stock["drivers"][0].pk]).update(profile=profile)
    text = signed_in(admin).post(address("run_preview", admin.team), run_form(stock)).content.decode()
    assert "would share CPU 0-3 of one machine" in text


def test_the_preview_tells_of_a_recipe_that_needs_root_where_there_is_none(
    admin: Member, stock: dict[str, Any]
) -> None:
    stock["recipe"] = save_version(
        admin, Recipe, "swappiness", {"steps": [{"kind": "sysctl", "values": {"vm.swappiness": "1"}}]}
    )
    client = signed_in(admin)
    finding = HostFinding("root", "missing", "sudo asks bench for a password.", "echo")
    for findings, told in (((), False), ((finding,), True)):
        Host.objects.filter(pk=stock["sut"].pk).update(last_check=check_state("ok", "Logged in.", "", findings))
        text = client.post(address("run_preview", admin.team), run_form(stock)).content.decode()
        assert ("the recipe needs root for sysctl" in text) is told


def share_a_machine(admin: Member, stock: dict[str, Any]) -> None:
    facts = {"cpu.online": "0-3", "cpu.offline": ""}
    profile = HardwareProfile.objects.create(team=admin.team, digest="four", facts=facts)
    machine = Machine.objects.create(boot_id="b")
    hosts = [stock["sut"].pk, *(host.pk for host in stock["drivers"])]
    Host.objects.filter(pk__in=hosts).update(profile=profile, machine=machine)


def chosen(html: str, name: str) -> str:
    """The value that is selected in the form's field."""
    field = html.partition(f'name="{name}"')[2].partition("</select>")[0]
    found = re.search(r'value="(\d+)"\s+selected', field)
    assert found is not None
    return found[1]


def test_the_form_of_a_run_proposes_cpu_sets_and_launches_with_them(
    admin: Member, stock: dict[str, Any], make_member: MakeMember
) -> None:
    share_a_machine(admin, stock)
    client = signed_in(admin)
    preview = flat(client.post(address("run_preview", admin.team), run_form(stock)).content.decode())
    assert "server on CPU <code>0-1</code>, load tool on CPU <code>2-3</code>" in preview
    assert "Use these CPU sets" in preview
    refused = client.post(address("new_run", admin.team), run_form(stock))
    assert (refused.status_code, Run.objects.count()) == (422, 0)

    page = client.post(address("new_run", admin.team), run_form(stock, cpu_sets="1", tags="night")).content.decode()
    assert "night" in page
    form = run_form(stock) | {name: chosen(page, name) for name in ("application", "workload")}
    assert "Use these CPU sets" not in client.post(address("run_preview", admin.team), form).content.decode()
    assert client.post(address("new_run", admin.team), form).status_code == 302
    spec = RunSpec.model_validate(Run.objects.get().spec)
    assert (spec.application.server.cpus, spec.workload.cpus) == ("0-1", "2-3")
    launcher = make_member(admin.team, Role.LAUNCHER, "lea")
    assert "An editor gives application and workload these CPU sets" in flat(
        signed_in(launcher).post(address("run_preview", admin.team), run_form(stock)).content.decode()
    )


def test_the_form_of_an_experiment_proposes_cpu_sets_for_all_of_its_variants(
    admin: Member, stock: dict[str, Any]
) -> None:
    share_a_machine(admin, stock)
    client = signed_in(admin)
    assert (
        "Use these CPU sets"
        in client.post(address("experiment_preview", admin.team), experiment_form(stock)).content.decode()
    )
    assert client.post(address("new_experiment", admin.team), experiment_form(stock)).status_code == 422
    assert not Experiment.objects.exists()
    page = client.post(address("new_experiment", admin.team), experiment_form(stock, cpu_sets="1")).content.decode()
    form = experiment_form(stock) | {name: chosen(page, name) for name in ("workload", "v0-application")}
    assert form.pop("v1-application") == str(stock["application"].pk) != form["v0-application"]  # both have the first's
    assert 'value="2048"' in page
    assert client.post(address("new_experiment", admin.team), form).status_code == 302
    assert {run.spec["workload"]["cpus"] for run in Run.objects.all() if run.spec} == {"2-3"}


def test_choosing_a_recipe_brings_its_parameters(admin: Member, stock: dict[str, Any]) -> None:
    url = address("run_parameters", admin.team)
    client = signed_in(admin)
    assert 'name="p_nofile"' in client.get(url, {"recipe": stock["recipe"].pk}).content.decode()
    named = client.get(url, {"v3-recipe": stock["recipe"].pk, "prefix": "v3"}).content.decode()
    assert 'name="v3-p_nofile"' in named
    assert client.get(url, {"prefix": "<script>"}).status_code == 400


def test_a_dry_run_is_stored_and_its_result_asked_for(
    admin: Member, stock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(admin)
    answer = client.post(address("dry_run", admin.team), run_form(stock))
    found = DryRun.objects.get()
    assert address("dry_run_result", admin.team, found.pk) in answer.content.decode()
    DryRun.objects.update(state="failed", message="No route to host.", hint="Look at the cable.")
    assert "Look at the cable." in client.get(address("dry_run_result", admin.team, found.pk)).content.decode()


def test_the_result_of_a_dry_run_is_the_plan_with_its_commands(admin: Member, stock: dict[str, Any]) -> None:
    client = signed_in(admin)
    client.post(address("dry_run", admin.team), run_form(stock))
    found = DryRun.objects.get()
    plan = asdict(build_plan(RunSpec.model_validate(found.spec)))
    DryRun.objects.update(state="ready", plan=plan)
    text = client.get(address("dry_run_result", admin.team, found.pk)).content.decode()
    assert "Dry run: what would be done on sut-1" in text
    assert "wrk -t2 -c16" in text
    assert "hx-get" not in text


def test_an_experiment_is_made_and_launched(admin: Member, stock: dict[str, Any]) -> None:
    answer = signed_in(admin).post(address("new_experiment", admin.team), experiment_form(stock, launch="1"))
    made = Experiment.objects.get()
    assert answer.headers["Location"] == address("experiment", admin.team, made.pk)
    assert (made.margin_ratio, made.repetitions, made.state) == (0.05, 2, "running")
    assert [(v.name, v.is_baseline, v.parameters) for v in made.variants.all()] == [
        ("default", True, {}),
        ("few files", False, {"nofile": 2048}),
    ]
    assert made.runs.count() == 4


def test_an_experiment_can_stay_a_draft(admin: Member, stock: dict[str, Any]) -> None:
    signed_in(admin).post(address("new_experiment", admin.team), experiment_form(stock, draft="1"))
    assert Experiment.objects.get().state == "draft"
    assert Run.objects.count() == 0


@pytest.mark.parametrize(
    ("change", "rows", "kept"),
    [
        ({"add": "1"}, ["v0", "v1", "v2"], "2048"),
        ({"copy": "0"}, ["v0", "v2", "v1"], "2048"),
        ({"remove": "0"}, ["v1"], "2048"),
    ],
)
def test_rows_are_added_copied_and_removed_with_all_that_was_typed(
    admin: Member, stock: dict[str, Any], change: dict[str, str], rows: list[str], kept: str
) -> None:
    answer = signed_in(admin).post(address("new_experiment", admin.team), experiment_form(stock) | change)
    text = answer.content.decode()
    assert [f"v{row}" for row, _, _ in answer.context["rows"]] == rows
    assert kept in text
    assert "Do more open files help?" in text
    assert "errorlist" not in text
    assert Experiment.objects.count() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"v1-name": "default"}, "Two variants have the same name"),
        ({"v1-name": ""}, "This field is required"),
        ({"v1-p_nofile": "1"}, "Must be at least 1024"),
        ({"repetitions": "0"}, "greater than or equal to 1"),
    ],
)
def test_a_wrong_variant_is_named(admin: Member, stock: dict[str, Any], change: dict[str, str], words: str) -> None:
    answer = signed_in(admin).post(address("new_experiment", admin.team), experiment_form(stock) | change)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert Experiment.objects.count() == 0


def test_the_preview_of_an_experiment_counts_its_runs_and_time(admin: Member, stock: dict[str, Any]) -> None:
    answer = signed_in(admin).post(address("experiment_preview", admin.team), experiment_form(stock))
    first = answer.context["forecast"].first
    assert (first.blocks, first.runs, first.duration_s) == (2, 4, 80)
    assert "4 runs, about 1 min." in answer.content.decode()
    assert "Plan of default" in answer.content.decode()


def test_a_copied_experiment_fills_the_form(admin: Member, stock: dict[str, Any]) -> None:
    client = signed_in(admin)
    client.post(address("new_experiment", admin.team), experiment_form(stock, draft="1", baseline="1"))
    page = client.get(address("new_experiment", admin.team) + f"?from={Experiment.objects.get().pk}")
    assert [(form.initial["name"], is_baseline) for _, form, is_baseline in page.context["rows"]] == [
        ("default", False),
        ("few files", True),
    ]
    assert "2048" in page.content.decode()


def table_of(page: str) -> list[list[str]]:
    """The table of variants: its headings without Baseline and Actions, then the values of each row's inputs."""
    table = next(one for one in html.fromstring(page).iter("table") if "variants" in one.get("class", ""))
    heads = [" ".join("".join(map(str, cell.itertext())).split()) for cell in table.iterfind(".//thead/tr/th")]
    found = [heads[:-2]]
    for row in table.iterfind(".//tbody/tr"):
        inputs = [[one.get("value", "") for one in cell.iter("input") if one.get("type") != "hidden"] for cell in row]
        found.append([(values or [""])[0] for values in inputs[:-2]])
    return found


def test_variants_are_rows_with_only_what_differs_as_columns(admin: Member, stock: dict[str, Any]) -> None:
    client, url = signed_in(admin), address("new_experiment", admin.team)
    same = parts(stock, "v0-")
    form = {**experiment_form(stock), "v0-p_nofile": "4096"}
    whole = client.post(url, form | {"refresh": "1"}).content.decode()
    assert table_of(whole) == [["Variant", "Nofile"], ["default", "4096"], ["few files", "2048"]]
    assert whole.count("-application") == whole.count("v0-application")  # once for all variants
    for name in same:
        form.pop(name.replace("v0-", "v1-"), None)
    added = client.post(url, form | {"add_column": "1", "vary": "concurrency"}).content.decode()
    assert table_of(added)[0] == ["Variant", "Nofile", "Connections or users"]
    assert client.post(url, form | {"launch": "1"}).status_code == 302
    first, second = Experiment.objects.get().variants.order_by("position")
    assert (first.parameters, second.parameters) == ({"nofile": 4096}, {"nofile": 2048})
    for name in ("application_id", "recipe_id", "sut_id", "drivers_id"):
        assert getattr(first, name) == getattr(second, name)


def test_another_recipe_in_one_row_makes_its_parameters_columns(admin: Member, stock: dict[str, Any]) -> None:
    body = {"parameters": {"depth": {"type": "int", "default": 3}}, "steps": [{"kind": "limits", "nofile": 2048}]}
    other = save_version(admin, Recipe, "other", body)
    client, url = signed_in(admin), address("new_experiment", admin.team)
    form = {**experiment_form(stock), "v1-recipe": str(other.pk), "refresh": "1"}
    headings = table_of(client.post(url, form).content.decode())[0]
    assert headings == ["Variant", "Recipe", "Nofile", "Depth"]


def test_removing_the_first_variant_keeps_what_all_have_in_common(admin: Member, stock: dict[str, Any]) -> None:
    client, url = signed_in(admin), address("new_experiment", admin.team)
    form = experiment_form(stock)
    for name in parts(stock, "v1-"):
        form.pop(name, None)
    page = client.post(url, form | {"remove": "0"}).content.decode()
    assert table_of(page)[1:] == [["few files"]]
    assert 'name="v1-application"' in page
    assert f'<option value="{stock["application"].pk}" selected' in page
