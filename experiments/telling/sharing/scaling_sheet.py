"""What is shown of an experiment as a scaling measurement: throughput against CPUs and what to make of it."""

from __future__ import annotations

from django.utils import timezone

from experiments.judging.comparing.history import experiment_runs
from experiments.judging.comparing.scaling import Point, Scaling, cpus_per_node, groups_of, load_text, scaling_of
from experiments.models import Experiment
from experiments.registry.errors import Conflict
from experiments.telling.reports.plots import CurvePlot
from experiments.telling.sharing import wording
from experiments.telling.sharing.lines import PlotLine, line_plot, plain_ticks
from experiments.telling.sharing.sheet import Sentences, Sheet, Table

_STEPS = 40


def scaling_sheet(experiment: Experiment) -> Sheet:
    """The scaling of the experiment as it is now. Conflict when fewer than two CPU counts were measured."""
    variants = list(experiment.variants.select_related("sut__profile"))
    facts: dict[str, str] = next((one.sut.profile.facts for one in variants if one.sut.profile), {})
    groups = groups_of(experiment, variants, experiment_runs(experiment))
    scaling = scaling_of(groups, cpus_per_node=cpus_per_node(facts))
    if scaling is None:
        raise Conflict("It takes counted runs on at least two different numbers of CPUs.")
    last = scaling.points[-1]
    times = last.mean.value / scaling.points[0].mean.value
    first = f"{scaling.base_cpus} CPU{'s' if scaling.base_cpus > 1 else ''}"
    said = (
        f"{last.group.cpus} CPUs do {times:.3g} times the throughput of {first}: "
        f"{last.efficiency.ratio * 100:.0f} % efficiency."
    )
    return Sheet(
        title=f"Scaling: {experiment.name}",
        sentence=f"{said} {scaling.sentences[0]}" if scaling.sentences else said,
        caution="It was not finished when this was made." if experiment.state in ("running", "paused") else "",
        badge_label=f"scaling to {last.group.cpus} CPUs",
        badge_value=f"{times:.3g}×, {last.efficiency.ratio * 100:.0f} % efficiency",
        facts=wording.facts(
            ("Question", experiment.question),
            ("Workload", str(experiment.workload)),
            ("Load", load_text(experiment, variants)),
            ("State", str(experiment.get_state_display()).capitalize()),
        ),
        plots=(_plot(scaling),),
        sections=(_points(scaling), *_more(scaling)),
        frozen_at=timezone.now(),
        made_by_version=wording.version(),
    )


def _plot(scaling: Scaling) -> CurvePlot:
    points = scaling.points
    lines = [
        PlotLine(
            "measured, the best of each CPU count",
            [(float(one.group.cpus), one.mean.value, f"{one.group.name}: {one.mean.value:,.0f}") for one in points],
            dots=True,
        ),
        PlotLine("ideal", [(float(one.group.cpus), one.ideal_rps, "") for one in points]),
    ]
    if scaling.law is not None:
        low, high = float(scaling.base_cpus), float(points[-1].group.cpus)
        at = [low + (high - low) * step / _STEPS for step in range(_STEPS + 1)]
        lines.append(PlotLine("fitted law", [(cpus, scaling.law.at(cpus), "") for cpus in at]))
    if scaling.several:
        several = [(float(one.group.cpus), one.mean.value, one.group.name) for one in scaling.several]
        lines.append(PlotLine("several instances", several, dots=True))
    return line_plot(
        lines,
        name="scaling",
        title="Throughput in requests/s against CPUs",
        summary="; ".join(f"{one.group.cpus} CPUs {one.mean.value:,.0f} requests/s" for one in points) + ".",
        y_text=lambda value: f"{value:,.6g}",
        x_ticks=plain_ticks,
        from_zero=True,
    )


def _points(scaling: Scaling) -> Table:
    rows = tuple(_row(one) for one in (*scaling.points, *scaling.several))
    heads = ("Variant", "Load", "CPUs", "Instances", "n", "Requests/s", "95 % interval", "Ideal", "Efficiency")
    return Table(title="Points", heads=heads, rows=rows)


def _row(point: Point) -> tuple[str, ...]:
    group, ci95, share = point.group, point.mean.ci95, point.efficiency
    between = f" [{share.ci95[0] * 100:.0f}, {share.ci95[1] * 100:.0f}]" if share.ci95 else ""
    return (
        group.name,
        group.load.text,
        str(group.cpus),
        str(group.instances),
        str(len(group.repetitions)),
        f"{point.mean.value:,.0f}",
        f"{ci95[0]:,.0f} to {ci95[1]:,.0f}" if ci95 else "—",
        f"{point.ideal_rps:,.0f}",
        f"{share.ratio * 100:.0f} %{between}",
    )


def _more(scaling: Scaling) -> tuple[Sentences, ...]:
    rest = scaling.sentences[1:]
    return (Sentences(title="What it says", sentences=rest),) if rest else ()
