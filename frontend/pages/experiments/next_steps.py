"""What to look at next on an experiment's page: while it runs the run under way, then what its answer rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from experiments.models import Experiment, Role, Run, Series, StoredVerdict, Variant
from frontend.charts.ab import counts
from frontend.shared.access import TeamRequest

_OPEN = ("inconclusive", "invalid")


@dataclass(frozen=True)
class NextStep:
    """A link and what stands behind it."""

    words: str
    url: str
    rest: str


def next_steps(
    request: TeamRequest,
    experiment: Experiment,
    variants: Sequence[Variant],
    runs: Sequence[Run],
    verdicts: Sequence[StoredVerdict],
) -> list[NextStep]:
    """In the order in which a newcomer goes on; nothing for a draft. Two queries at most."""
    slug = request.team.slug
    under_way = [run for run in runs if run.is_live and run.started_at is not None]
    if any(run.is_live for run in runs):
        return [
            NextStep(
                f"Run #{run.number}", reverse("run", args=[slug, run.number]), "is under way: its phases and log, live."
            )
            for run in under_way[:1]
        ]
    metric = experiment.primary_metric
    newest = {variant.pk: run for variant in variants for run in runs if counts(run, variant, metric)}
    if not newest:
        return []
    steps = []
    deciding = [verdict for verdict in verdicts if verdict.metric == metric]
    if any(verdict.outcome in _OPEN for verdict in deciding):
        why = "tells what made the figures differ from run to run; more repetitions make the interval narrower."
        steps.append(NextStep("The noise", "#noise", why))
    if len(newest) > 1:
        numbers = ",".join(str(newest[variant.pk].number) for variant in variants if variant.pk in newest)
        told = "side by side: every figure, and what differed in configuration and hardware."
        steps.append(NextStep("The newest runs", f"{reverse('compare', args=[slug])}?runs={numbers}", told))
    last = max(newest.values(), key=lambda run: run.number)
    recorded = "in full: its phases, the CPU of both hosts, and the checks that it passed or not."
    steps.append(NextStep(f"Run #{last.number}", reverse("run", args=[slug, last.number]), recorded))
    report = reverse("experiment_report", args=[slug, experiment.pk])
    steps.append(NextStep("The report", report, "has the answer and its evidence on one page, to print or to send."))
    return [*steps, *_onward(request, experiment, last)]


def _onward(request: TeamRequest, experiment: Experiment, last: Run) -> list[NextStep]:
    """The history that its runs are in, and a question of the same workload that waits."""
    slug, found = request.team.slug, []
    series = Series.objects.for_team(request.team).filter(fingerprint=last.fingerprint).first()
    if last.fingerprint and series is not None:
        history = f"{reverse('trends', args=[slug])}?series={series.pk}"
        found.append(NextStep("Trends", history, "shows these figures among earlier and later ones."))
    if Role(request.member.role).covers(Role.LAUNCHER):
        drafts = Experiment.objects.for_team(request.team).filter(state=Experiment.State.DRAFT)
        draft = drafts.filter(workload=experiment.workload_id).order_by("-pk").first()
        if draft is not None:
            rest = f"waits to be launched{f': {draft.question}' if draft.question else '.'}"
            found.append(NextStep(draft.name, reverse("experiment", args=[slug, draft.pk]), rest))
    return found
