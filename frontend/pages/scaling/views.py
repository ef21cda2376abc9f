"""Scaling: throughput and efficiency against CPUs, and latency against throughput over several loads."""

from __future__ import annotations

from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.shortcuts import render

from experiments.analysis.scaling_points import MIN_EFFICIENCY_RATIO
from experiments.judging.comparing.history import experiment_runs
from experiments.judging.comparing.scaling import Group, cpus_per_node, groups_of, load_text, scaling_of
from experiments.models import Experiment, Variant
from experiments.registry.metrics.normalisation import MOST_CPUS
from frontend.charts.curve import CurvePoint, curve_over_loads, load_points
from frontend.charts.scaling import scaling_json
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.lookups import find_experiment
from frontend.shared.query import id_in

MOST_TOGETHER = 20


@team_view()
def scaling(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """The page. `?with=12&with=13` adds experiments of other loads: the best of each CPU count is taken over all."""
    found = find_experiment(request, experiment_id)
    others = [pk for text in request.GET.getlist("with") if (pk := id_in(text)) is not None and pk != found.pk]
    together = [found, *(find_experiment(request, pk) for pk in dict.fromkeys(others[:MOST_TOGETHER]))]
    groups: list[Group] = []
    curve: list[CurvePoint] = []
    facts: dict[str, str] = {}
    for experiment in together:
        variants = list(experiment.variants.select_related("application", "recipe", "sut__profile"))
        runs = experiment_runs(experiment)
        groups += groups_of(experiment, variants, runs)
        curve += load_points(experiment, variants, runs)
        if not facts and variants and variants[0].sut.profile:
            facts = variants[0].sut.profile.facts
    total = _between(request.GET.get("total", ""), MOST_CPUS)
    node = _between(request.GET.get("node", ""), MOST_CPUS) or cpus_per_node(facts)
    share = _between(request.GET.get("efficiency", ""), 100) or round(MIN_EFFICIENCY_RATIO * 100)
    made = scaling_of(groups, total_cpus=total, cpus_per_node=node, min_efficiency_ratio=share / 100)
    return render(
        request,
        "scaling/page.html",
        {
            "experiment": found,
            "together": together,
            "candidates": _with_other_loads(found),
            "scaling": made,
            "chart": scaling_json(made) if made else None,
            "groups": sorted(groups, key=lambda g: (g.cpus, g.instances, -g.mean_rps)),
            "total": total or (max(point.group.cpus for point in made.points) if made else None),
            "node": node,
            "share": share,
            "curve": curve_over_loads(curve),
        },
    )


def _with_other_loads(experiment: Experiment) -> list[tuple[Experiment, str]]:
    """Newer and older experiments on the same hosts under other loads, whose runs may be added."""
    hosts = experiment.variants.values("sut_id")
    own_loads = Variant.objects.filter(experiment=OuterRef("pk"), concurrency__isnull=False)
    same = (
        Experiment.objects.filter(team_id=experiment.team_id, variants__sut_id__in=hosts)
        .annotate(load_is_own=Exists(own_loads))
        .exclude(pk=experiment.pk)
        .exclude(workload_id=experiment.workload_id, load_is_own=False)
        .exclude(state=Experiment.State.DRAFT)
        .select_related("workload")
        .prefetch_related("variants")
        .distinct()
        .order_by("-id")
    )
    return [(one, load_text(one, one.variants.all())) for one in same[:MOST_TOGETHER]]


def _between(text: str, most: int) -> int | None:
    """A whole number from 1 to `most` in a query string; None when it is none."""
    value = id_in(text)
    return value if value is not None and 1 <= value <= most else None
