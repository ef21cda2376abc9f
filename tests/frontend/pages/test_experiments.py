"""The experiment page: verdicts as a table, looks, the A/A check, cost, and how it is held and resumed."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from django.test import Client

from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.asking.launching.pausing import pause_experiment
from experiments.judging.verdicts.judging import store_verdicts
from experiments.models import Experiment, Member, Role, Run, StoredVerdict, Team
from experiments.registry.experiments.rules import Rules
from frontend.pages.help.contents import help_page
from frontend.shared.templatetags.explained import EXPLAINED
from tests.experiments.conftest import MakeMember, admin, make_member, stock, team
from tests.frontend.pages.test_new_run import experiment_form
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "stock", "team"]


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.registry.workers.outbox.hint", lambda *_given: None)


def made(admin: Member, stock: dict[str, Any], rules: Rules, *, variants: int = 2) -> Experiment:
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    candidates = [Candidate(f"v{i}", parameters={"nofile": 2048 + i}, **sides) for i in range(variants)]
    experiment = create_experiment(admin, name="q", workload=stock["workload"], candidates=candidates, rules=rules)
    launch_experiment(admin, experiment)
    return experiment


def finish(experiment: Experiment, *factors: float, wobble: float = 0.002) -> None:
    """Every run ended with a throughput and latency of its variant's factor."""
    for run in experiment.runs.select_related("variant"):
        assert run.variant is not None
        assert run.block is not None
        place = 10 * run.block + run.variant.position + 1  # not the random order inside a block
        value = 1000.0 * factors[run.variant.position] * (1 + wobble * math.sin(12.9898 * place))
        run.state, run.outcome, run.validity = "finished", "succeeded", "valid"
        run.metrics = {"throughput_rps": value, "latency_p99_ms": 9000 / value}
        run.save()
    store_verdicts(experiment)


def page_of(admin: Member, experiment: Experiment) -> str:
    answer = signed_in(admin).get(address("experiment", admin.team, experiment.pk))
    assert answer.status_code == 200
    return str(answer.content.decode())


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_verdicts_are_a_table_of_candidates_and_metrics(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules(), variants=3)
    finish(experiment, 1.0, 1.2, 0.8)
    page = page_of(admin, experiment)
    assert page.count('class="heat-cell heat-good"') == 2
    assert page.count('class="heat-cell heat-bad"') == 2
    text = text_of(page)
    assert "+20.0 %" in text
    assert "Better · p &lt; 0.0001 of 2" in text
    assert "Throughput decides" in text
    assert "Latency, p99" in text


def test_the_page_says_what_to_look_at_next(admin: Member, stock: dict[str, Any], make_member: MakeMember) -> None:
    def links(who: Member) -> dict[str, str]:
        listed = page_of(who, experiment).partition("Look at next</h2>")[2].partition("</section>")[0]
        return {words: url for url, words in re.findall(r'<li><a href="([^"]+)">([^<]+)</a>', listed)}

    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    one = [Candidate("only", **sides)]
    create_experiment(admin, name="and then", workload=stock["workload"], candidates=one, question="What of it?")
    experiment = made(admin, stock, Rules())
    assert links(admin) == {}  # nothing runs yet
    first = experiment.runs.order_by("number")[0]
    Run.objects.filter(pk=first.pk).update(state="running", started_at=first.queued_at)
    assert links(admin) == {f"Run #{first.number}": address("run", admin.team, first.number)}
    Run.objects.filter(pk=first.pk).update(started_at=None)  # `finish` gives no time to any
    finish(experiment, 1.0, 1.2)
    found = links(admin)
    last = Run.objects.latest("number").number
    assert list(found) == ["The newest runs", f"Run #{last}", "The report", "and then"]
    assert re.fullmatch(r".*/compare/\?runs=\d+,\d+", found["The newest runs"])
    assert all(signed_in(admin).get(url).status_code == 200 for url in found.values())
    assert "and then" not in links(make_member(admin.team, Role.VIEWER))
    finish(experiment, 1.0, 1.001, wobble=0.3)
    page = page_of(admin, experiment)
    assert ("inconclusive" in text_of(page), 'id="noise"' in page, links(admin)["The noise"]) == (True, True, "#noise")


def test_a_difference_that_does_not_hold_among_many_is_shown_as_open(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules(), variants=3)
    finish(experiment, 1.0, 1.2, 0.8)
    verdict = StoredVerdict.objects.get(candidate__name="v2", metric="throughput_rps")
    verdict.numbers["family"] |= {"adjusted_p": 0.07, "stands": False}
    verdict.save()
    page = page_of(admin, experiment)
    assert "heat-open" in page
    assert "Does not hold · p 0.07 of 2" in text_of(page)


def test_looks_are_listed_with_their_alpha_and_the_next_one(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules(stop_rule="until_clear", max_blocks=12))
    finish(experiment, 1.0, 1.02, wobble=0.2)
    text = text_of(page_of(admin, experiment))
    assert "Looks after 5, 8, 12 blocks, each at α 0.016" in text
    assert "next look after 8 complete blocks" in text
    finish(experiment, 1.0, 1.2)
    assert "v1, Throughput: settled" in text_of(page_of(admin, experiment))


def test_precision_says_what_it_waits_for(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules(stop_rule="until_precise", target_ratio=0.01, max_blocks=30))
    finish(experiment, 1.0, 1.02)
    text = text_of(page_of(admin, experiment))
    assert "until the 95 % interval is within ±1 %, then two blocks more; at most 30." in text
    assert "next look after 10 complete blocks" in text


def test_the_a_a_check_is_told_apart_from_the_blocks(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules(aa_first=True))
    finish(experiment, 1.0)
    experiment.aa_result = {
        "outcome": "no_practical_difference",
        "sentence": "Throughput: no difference.",
        "cov_pct": 0.4,
    }
    experiment.save()
    text = text_of(page_of(admin, experiment))
    assert "A/A check. Throughput: no difference. Noise from run to run: CoV 0.4 %." in text
    assert "A/A 10" in text
    assert "Block 1" not in text


def test_a_blocked_experiment_says_why_and_can_be_resumed(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules(aa_first=True))
    finish(experiment, 1.0)
    experiment.state, experiment.state_reason = "blocked", "The A/A check found a difference."
    experiment.aa_result = {"outcome": "better", "sentence": "x"}
    experiment.save()
    client = signed_in(admin)
    page = client.get(address("experiment", admin.team, experiment.pk)).content.decode()
    assert "The A/A check found a difference." in page
    assert "Resume" in page
    client.post(address("resume_experiment", admin.team, experiment.pk))
    experiment.refresh_from_db()
    assert (experiment.state, experiment.runs.filter(state="queued").count()) == ("running", 10)


def test_pause_and_resume_from_the_page(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules())
    client = signed_in(admin)
    answer = client.post(address("pause_experiment", admin.team, experiment.pk), follow=True)
    text = text_of(answer.content.decode())
    assert "Paused by ada." in text
    assert "Resume" in text
    assert "its 10 runs that are not finished" in answer.content.decode()
    queue = text_of(client.get(address("queue", admin.team)).content.decode())
    assert "Its experiment is paused; resume it on its page." in queue
    again = client.post(address("pause_experiment", admin.team, experiment.pk), follow=True)
    assert "only a running one can be paused" in again.content.decode()
    client.post(address("resume_experiment", admin.team, experiment.pk))
    experiment.refresh_from_db()
    assert experiment.state == "running"


def test_a_viewer_neither_pauses_nor_resumes(admin: Member, stock: dict[str, Any], make_member: MakeMember) -> None:
    experiment = made(admin, stock, Rules())
    viewer = make_member(admin.team, Role.VIEWER)
    for name in ("pause_experiment", "resume_experiment"):
        assert signed_in(viewer).post(address(name, admin.team, experiment.pk)).status_code == 403
    assert "Pause" not in text_of(page_of(viewer, experiment))


def test_cost_so_far_and_left(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules(stop_rule="until_clear"))
    text = text_of(page_of(admin, experiment))
    assert "0.0 s of machine time, about 3 min 20 s queued, at most 10 min more" in text
    pause_experiment(admin, experiment)
    assert "Resume" in text_of(page_of(admin, experiment))


def test_a_new_experiment_takes_its_rules_from_the_form_and_a_copy_keeps_them(
    admin: Member, stock: dict[str, Any]
) -> None:
    rules = {
        "stop_rule": "until_precise",
        "target_pct": "1.5",
        "max_blocks": "30",
        "max_hours": "2",
        "aa_first": "on",
        "gate_metrics": ["latency_p99_ms"],
    }
    client = signed_in(admin)
    answer = client.post(address("new_experiment", admin.team), experiment_form(stock, draft="1", **rules))
    assert answer.status_code == 302
    kept = Experiment.objects.get()
    assert (kept.stop_rule, kept.target_ratio, kept.max_blocks, kept.max_hours) == ("until_precise", 0.015, 30, 2.0)
    assert (kept.aa_first, kept.gate_metrics, kept.repetitions) == (True, ["latency_p99_ms"], 8)
    clone = f"{address('new_experiment', admin.team)}?from={kept.pk}"
    assert f'href="{clone}"' in page_of(admin, kept)
    copy = client.get(clone)
    assert copy.context["form"].initial["target_pct"] == 1.5
    assert copy.context["form"].initial["gate_metrics"] == ["latency_p99_ms"]


def test_who_may_not_launch_on_its_hosts_is_told_so_instead_of_being_refused(
    admin: Member, stock: dict[str, Any], make_member: MakeMember, team: Team
) -> None:
    experiment = made(admin, stock, Rules())
    finish(experiment, 1.0, 1.0)
    Experiment.objects.update(state=Experiment.State.FINISHED)
    launcher = make_member(team, Role.LAUNCHER)
    assert "Add repetitions" in page_of(admin, experiment)
    page = page_of(launcher, experiment)
    assert "Add repetitions" not in page
    assert "You need a grant for its hosts" in page


@pytest.mark.parametrize(
    ("rules", "status", "seen"),
    [
        ("", 200, ("Inconclusive", "benchhub-ci gate experiment:{pk}")),
        ("inconclusive=pass", 200, ("Pass", "an inconclusive result as pass", "experiment:{pk} --inconclusive pass")),
        ("inconclusive=fail", 200, ("Fail", "counts an inconclusive result as fail")),
        ("margin_pct=30&metric=throughput_rps", 200, ("Pass", "--metric throughput_rps --margin 30")),
        ("baseline=branch:main", 200, ("Inconclusive", "--baseline branch:main")),
        ("margin_pct=much", 422, ("Enter a number.", 'value="much"')),
        ("baseline=main", 422, ("branch:main", 'value="main"')),
    ],
)
def test_the_gate_is_asked_by_other_rules_in_the_browser_as_by_the_pipeline(
    admin: Member, stock: dict[str, Any], rules: str, status: int, seen: tuple[str, ...]
) -> None:
    experiment = made(admin, stock, Rules())
    finish(experiment, 1.0, 1.0, wobble=0.12)
    answer = signed_in(admin).get(f"{address('gate', admin.team, experiment.pk)}?{rules}")
    assert answer.status_code == status
    page = answer.content.decode()
    for words in seen:
        assert words.format(pk=experiment.pk) in page


def test_a_rule_that_makes_no_sense_is_shown_at_its_field(admin: Member, stock: dict[str, Any]) -> None:
    form = experiment_form(stock, draft="1", stop_rule="until_precise")
    answer = signed_in(admin).post(address("new_experiment", admin.team), form)
    assert answer.status_code == 422
    assert "target_pct" in answer.context["form"].errors
    assert Run.objects.count() == 0


def test_the_preview_says_what_it_takes_and_names_the_rules_for_the_api(
    admin: Member, stock: dict[str, Any], client: Client
) -> None:
    form = experiment_form(stock, stop_rule="until_clear", aa_first="on")
    answer = signed_in(admin).post(address("experiment_preview", admin.team), form)
    text = text_of(answer.content.decode())
    assert "20 runs, 10 of them the baseline against itself, about 7 min." in text
    assert "up to 20 blocks: 50 runs" in text
    assert "No earlier runs of this workload on sut-1 tell the noise" in text
    assert "&quot;stop_rule&quot;: &quot;until_clear&quot;" in answer.content.decode()


def test_every_explanation_is_a_heading_of_the_help() -> None:
    assert [one for one in EXPLAINED.values() if f'id="{one.anchor}"' not in help_page(one.topic).html] == []


def test_statistics_link_to_their_explanation(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made(admin, stock, Rules(stop_rule="until_clear"))
    finish(experiment, 1.0, 1.2)
    page = page_of(admin, experiment)
    for anchor in ("the-outcomes", "the-arithmetic", "many-comparisons", "when-to-stop"):
        assert f'href="/t/perf/help/verdicts/#{anchor}"' in page


def swept(admin: Member, stock: dict[str, Any]) -> Experiment:
    """Two factors, one of whose values is the recipe's default, in 3 x 2 variants."""
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    candidates = [
        Candidate(f"{nofile}/{connections}", parameters=given, concurrency=connections, **sides)
        for nofile, given in (("default", {}), ("2048", {"nofile": 2048}), ("4096", {"nofile": 4096}))
        for connections in (None, 128)
    ]
    experiment = create_experiment(admin, name="map", workload=stock["workload"], candidates=candidates)
    launch_experiment(admin, experiment)
    return experiment


def test_two_factors_are_a_map_with_what_each_of_them_does(admin: Member, stock: dict[str, Any]) -> None:
    experiment = swept(admin, stock)
    finish(experiment, 1.0, 1.1, 1.2, 1.32, 0.9, 0.99)
    page = page_of(admin, experiment)
    text = text_of(page.partition('id="factors"')[2].partition("</section>")[0])
    default = stock["recipe"].body["parameters"]["nofile"]["default"]
    assert f"nofile 2048 in place of {default} +20.0 %" in text
    assert "connections or users 128 in place of 64 +10.0 %" in text or "in place of" in text
    assert "holds" in text
    ranking = text_of(page.partition('id="ranking"')[2].partition("</section>")[0])
    assert "2048/128 is the best: each other variant is behind it." in ranking
    assert ranking.count("Behind") == 5
    report = text_of(signed_in(admin).get(address("experiment_report", admin.team, experiment.pk)).content.decode())
    markdown = signed_in(admin).get(address("experiment_report_markdown", admin.team, experiment.pk)).content.decode()
    for told in (report, markdown):
        assert "2048/128 is the best: each other variant is behind it." in told
        assert told.lower().count("behind the best") == 5
        assert f"nofile 2048 in place of {default}: +20.0 %" in told
    pdf = signed_in(admin).get(address("experiment_report_pdf", admin.team, experiment.pk))
    assert pdf.content[:4] == b"%PDF"


def test_the_baseline_is_changed_afterwards_and_the_verdicts_follow(
    admin: Member, stock: dict[str, Any], make_member: MakeMember
) -> None:
    experiment = made(admin, stock, Rules(), variants=3)
    place = address("change_baseline", admin.team, experiment.pk)
    signed_in(admin).post(place, {"variant": "v1"})
    assert experiment.variants.get(is_baseline=True).name == "v0"  # it is under way
    finish(experiment, 1.0, 1.2, 0.8)
    Experiment.objects.filter(pk=experiment.pk).update(state="finished")
    assert signed_in(make_member(admin.team, Role.VIEWER)).post(place, {"variant": "v1"}).status_code == 403
    signed_in(admin).post(place, {"variant": "v9"})
    assert experiment.variants.get(is_baseline=True).name == "v0"
    assert signed_in(admin).post(place, {"variant": "v1"}).status_code == 302
    assert experiment.variants.get(is_baseline=True).name == "v1"
    stored = StoredVerdict.objects.filter(experiment=experiment)
    assert {(one.baseline.name, one.candidate.name) for one in stored} == {("v1", "v0"), ("v1", "v2")}
    text = text_of(page_of(admin, experiment))
    assert "Its baseline is v1 since" in text
    assert "v0 is slower than v1 by 16.7 %" in text


def test_an_experiment_is_made_of_a_run(admin: Member, stock: dict[str, Any]) -> None:
    candidate = Candidate(
        "only", parameters={"nofile": 4096}, concurrency=128, **{k: v for k, v in stock.items() if k != "workload"}
    )
    experiment = create_experiment(admin, name="one", workload=stock["workload"], candidates=[candidate])
    launch_experiment(admin, experiment)
    number = experiment.runs.order_by("number")[0].number
    client = signed_in(admin)
    run_page = client.get(address("run", admin.team, number)).content.decode()
    begin = f"{address('new_experiment', admin.team)}?run={number}"
    assert f'href="{begin}"' in run_page
    page = client.get(begin).content.decode()
    for row, name in ((0, f"as run #{number}"), (1, "changed")):
        assert re.search(rf'name="v{row}-name" value="{name}"', page)
    for field, value in (("p_nofile", 4096), ("concurrency", 128)):  # both variants have them, once on the page
        assert re.findall(rf'name="v\d-{field}" value="(\d+)"', page) == [str(value)]
    assert re.search(rf'<option value="{stock["workload"].pk}" selected', page)
    assert client.get(f"{address('new_experiment', admin.team)}?run=999").status_code == 404
    Run.objects.filter(number=number).update(origin="imported")
    assert client.get(begin).status_code == 404
