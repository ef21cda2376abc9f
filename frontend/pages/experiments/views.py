"""Experiments: the list, and one with its question, its matrix and its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.contrib import messages
from django.db.models import Count, F, Prefetch, Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from experiments.asking.launching import cancelling, launch, pausing, rebaselining
from experiments.judging.comparing.comparison import comparable_runs, configuration_diff
from experiments.judging.comparing.factors import experiment_factors
from experiments.judging.comparing.history import experiment_runs
from experiments.judging.comparing.machines import machines_of_experiment
from experiments.judging.comparing.rankings import map_of, ranking_of
from experiments.judging.comparing.scaling import groups_of, scaling_of
from experiments.judging.evidence.host_canaries import hosts_before
from experiments.judging.explaining.why import why_of_experiment
from experiments.judging.verdicts import cpu_verdicts
from experiments.judging.verdicts.looks import looks_of, planned_looks
from experiments.judging.verdicts.noise_sources import noise_sources
from experiments.models import Experiment, Host, Member, Role, Run, RunProfile, StoredVerdict, Variant
from experiments.models.experiments import HELD
from experiments.registry.documents.contents import content_of
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.teams.access import may_launch_on_all
from experiments.running.queue.estimates import estimates_for
from experiments.running.queue.priorities import PRIORITIES
from experiments.running.queue.waiting import expected_end
from frontend.charts.ab import ab_json, counts
from frontend.charts.curve import curve_over_loads, load_points
from frontend.charts.machines import with_charts
from frontend.charts.percentiles import variant_percentiles_json
from frontend.charts.scaling import scaling_json
from frontend.charts.sweep import sweep_json
from frontend.pages.experiments.answer import cost_of, verdict_table
from frontend.pages.experiments.factor_map import shown_map
from frontend.pages.experiments.matrix import matrix_of
from frontend.pages.experiments.next_steps import next_steps
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.live_answer import page_anew
from frontend.shared.lookups import find_experiment
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid

PAGE = 50


@team_view()
def experiments(request: TeamRequest) -> HttpResponse:
    """The team's experiments, newest first."""
    found = (
        Experiment.objects.for_team(request.team)
        .select_related("workload", "created_by")
        .annotate(
            run_count=Count("runs", filter=Q(runs__trashed_at=None)),
            finished_count=Count("runs", filter=Q(runs__trashed_at=None, runs__state=Run.State.FINISHED)),
        )
        .prefetch_related(
            Prefetch(
                "verdicts",
                StoredVerdict.objects.filter(metric=F("experiment__primary_metric"))
                .select_related("candidate")
                .order_by("candidate__position"),
            )
        )
    )
    rows, older = found.newest_page(id_in(request.GET.get("before", "")), PAGE)
    context = {"experiments": rows, "older_query": f"before={older}" if older else ""}
    return render(request, "experiments/list.html", context)


@team_view()
def experiment(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """The page; a live one asks for `?part=answer` again, and `?part=noise` is read when it comes into sight."""
    found = find_experiment(request, experiment_id)
    variants = list(
        found.variants.select_related("recipe", "application", "sut", "drivers").prefetch_related("drivers__hosts")
    )
    runs = experiment_runs(found)
    if request.GET.get("part") == "noise":
        return render(request, "experiments/_noise.html", {"noise": noise_sources(found, variants, runs)})
    if request.GET.get("part") == "why":
        every = why_of_experiment(found, request.GET.get("metric", "").replace("\0", ""))
        answers = [one for one in every if one.why or one.functions]
        return render(request, "partials/why.html", {"answers": answers, "experiment_id": found.pk})
    verdicts = list(found.verdicts.select_related("baseline", "candidate").order_by("candidate__position", "metric"))
    judged = {verdict.metric for verdict in verdicts}
    asked = request.GET.get("metric", "").replace("\0", "")
    metrics = metrics_of(request.team.pk, judged | {asked, found.primary_metric})
    metric = metrics.get(asked, metrics[found.primary_metric])
    compares = [run for run in runs if found.compares(run.block)]
    finished = sum(not run.is_live for run in runs)
    needs_s = 0.0 if finished else _needs_s(found, variants)
    context = {
        "experiment": found,
        "variants": variants,
        "metric": metric,
        "matrix": matrix_of(variants, runs, metric, first_block=found.first_block),
        "verdicts": [v for v in verdicts if v.metric == metric.name],
        "verdict_table": verdict_table(found, verdicts),
        "hosts_before": hosts_before(found),
        "looks": looks_of(found, variants, runs),
        "planned_looks": planned_looks(found, len(variants) - 1) if found.stop_rule != "fixed" else "",
        "cost": cost_of(found, variants, runs, needs_s / (found.repetitions * len(variants) + found.first_block or 1)),
        "metrics": list(metrics.values()),
        "primary": metrics[found.primary_metric],
        "finished": finished,
        "total": len(runs),
        "unfinished": len(runs) - finished,
        "is_live": finished < len(runs),
        "held": found.state in HELD,
        "needs_s": needs_s if found.state == Experiment.State.DRAFT else None,
        "ends_at": expected_end(request.team, runs),
        "may_launch": may_launch_on_all(request.member, _hosts(variants)),
        "cancelled": sum(run.outcome == Run.Outcome.CANCELLED for run in runs),
        "profiled": RunProfile.objects.filter(run__experiment=found).exists(),
        "next_steps": next_steps(request, found, variants, runs, verdicts),
    }
    if request.GET.get("part") == "answer":
        return render(request, "experiments/_answer.html", context) if context["is_live"] else page_anew()
    machines = machines_of_experiment(found, variants, runs, metric.name)
    factors = experiment_factors(found, variants)
    two = map_of(found, factors, variants, compares, metric)
    return render(
        request,
        "experiments/page.html",
        {
            **context,
            "ab": ab_json(metric, variants, compares),
            "sweep": sweep_json(metric, factors, variants, compares),
            "factor_map": shown_map(two, metric) if two else None,
            "ranking": ranking_of(found, variants, compares, metric),
            "concurrency_unit": content_of(found.workload).driver.concurrency_option,
            "percentiles": variant_percentiles_json(
                variants, compares, content_of(found.workload).driver.latency_basis
            ),
            **_difference(request, variants, runs, metric.name),
            **_scaling(found, variants, runs),
            "load_curve": curve_over_loads(load_points(found, variants, runs)),
            "cpu_verdicts": cpu_verdicts.of_variants(found, variants, compares, verdicts),
            "machines": machines,
            "machine_splits": with_charts(machines, metric),
        },
    )


def _hosts(variants: Sequence[Variant]) -> list[Host]:
    return [host for variant in variants for host in (variant.sut, *variant.drivers.everyone)]


def _scaling(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run]) -> dict[str, object]:
    """What the scaling card shows, when the variants ran on different numbers of CPUs."""
    found = scaling_of(groups_of(experiment, variants, runs))
    return {"scaling": found, "scaling_chart": scaling_json(found)} if found else {}


def _needs_s(experiment: Experiment, variants: Sequence[Variant]) -> float:
    """What its first blocks and its A/A check take, one run after the other."""
    estimates = estimates_for({experiment.workload_id}, {variant.sut_id for variant in variants})
    each = {v.pk: estimates.takes_s(experiment.workload_id, v.sut_id) for v in variants}
    check_s = sum(each[v.pk] for v in variants if v.is_baseline) * experiment.first_block
    return experiment.repetitions * sum(each.values()) + check_s


def _difference(
    request: TeamRequest, variants: Sequence[Variant], runs: Sequence[Run], metric: str
) -> dict[str, object]:
    """The effective configurations of the newest counted run of each variant, side by side."""
    newest = {run.variant_id: run.number for v in variants for run in runs if counts(run, v, metric)}
    numbers = [newest[v.pk] for v in variants if v.pk in newest]
    if len(numbers) < 2:
        return {}
    compared = comparable_runs(request.team, numbers)
    return {"compared": compared, "difference": configuration_diff(compared)}


@require_POST
@team_view(Role.LAUNCHER)
def cancel_experiment(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """Cancel every run of it that is not finished."""
    found = find_experiment(request, experiment_id)
    cancelling.cancel_experiment(request.member, found)
    messages.success(request, "Cancelled. Runs that are under way stop their load and restore their hosts.")
    return redirect("experiment", request.team.slug, experiment_id)


@require_POST
@team_view(Role.LAUNCHER)
def change_baseline(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """Compare with the variant `variant` from now on."""
    found = find_experiment(request, experiment_id)
    with RefusalSaid(request):
        rebaselining.change_baseline(request.member, found, request.POST.get("variant", ""))
        messages.success(request, "The baseline is another one; the verdicts are made against it.")
    return redirect("experiment", request.team.slug, experiment_id)


@require_POST
@team_view(Role.LAUNCHER)
def pause_experiment(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """Start none of its queued runs until it is resumed."""
    return _held(request, experiment_id, pausing.pause_experiment, "Paused. A run that is under way comes to its end.")


@require_POST
@team_view(Role.LAUNCHER)
def resume_experiment(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """Go on where it was."""
    return _held(request, experiment_id, pausing.resume_experiment, "It goes on.")


def _held(
    request: TeamRequest, experiment_id: int, act: Callable[[Member, Experiment], None], done: str
) -> HttpResponse:
    found = find_experiment(request, experiment_id)
    with RefusalSaid(request):
        act(request.member, found)
        messages.success(request, done)
    return redirect("experiment", request.team.slug, experiment_id)


@require_POST
@team_view(Role.LAUNCHER)
def launch_experiment(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """Start a draft, or add `repetitions` more blocks to one that has run."""
    found = find_experiment(request, experiment_id)
    more = id_in(request.POST.get("repetitions", ""))
    priority = PRIORITIES.get(request.POST.get("priority", ""), Run.Priority.NORMAL)
    with RefusalSaid(request):
        runs = launch.launch_experiment(request.member, found, repetitions=more, priority=priority)
        messages.success(request, f"{len(runs)} runs queued.")
    return redirect("experiment", request.team.slug, experiment_id)
