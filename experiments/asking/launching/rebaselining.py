"""Another baseline for an experiment: what its candidates are compared with, chosen again."""

from __future__ import annotations

from django.db import transaction

from experiments.models import BisectionStep, Experiment, Member, Role, Variant
from experiments.models.experiments import UNDER_WAY
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.running.ending.rejudging import refresh_experiment


def change_baseline(member: Member, experiment: Experiment, name: str) -> None:
    """Make the variant of this name the baseline; an experiment that has ended is judged again, against it.

    Conflict while it is under way: its stop rule looks at the figures against the baseline that it has.
    RequestError when it has no such variant.
    """
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked: Experiment = Experiment.objects.select_for_update(of=("self",)).get(pk=experiment.pk)
        if locked.state in UNDER_WAY:
            raise Conflict(
                f"This experiment is {locked.get_state_display()}; choose another baseline when it has ended."
            )
        if BisectionStep.objects.filter(experiment=locked).exists():
            raise Conflict("This experiment is a step of a bisection, which compares with its good one.")
        variants = list(locked.variants.all())
        chosen = next((variant for variant in variants if variant.name == name), None)
        if chosen is None:
            known = ", ".join(variant.name for variant in variants)
            raise RequestError(f"There is no variant {name[:120]!r}; there is: {known}.", field="variant")
        if chosen.is_baseline:
            return
        before = next((variant.name for variant in variants if variant.is_baseline), "")
        Variant.objects.filter(experiment=locked, is_baseline=True).update(is_baseline=False)
        Variant.objects.filter(pk=chosen.pk).update(is_baseline=True)
        locked.verdicts.all().delete()
        if locked.state != Experiment.State.DRAFT:
            said = f"Its baseline is {chosen.name} since {member.user.get_username()} chose it afterwards"
            locked.state_reason = f"{said}; its runs were asked for with {before} as the baseline."
            locked.save(update_fields=["state_reason"])
            refresh_experiment(locked.pk)
        audit.record(
            member,
            "experiment.baseline",
            f"experiment {locked.name}",
            before={"baseline": before},
            after={"baseline": chosen.name},
        )
    experiment.refresh_from_db()
