"""What a new team does first, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q

from experiments.models import Application, Experiment, Host, Member, Recipe, Role, Run, Team, Token, Workload


@dataclass(frozen=True)
class FirstSteps:
    """Which steps are done, in the order in which they are taken."""

    hosts: bool
    documents: bool
    run: bool
    experiment: bool
    others: bool
    """Somebody else is in the team, or a script has a token."""

    @property
    def all_done(self) -> bool:
        return self.hosts and self.documents and self.run and self.experiment and self.others


def first_steps(member: Member) -> FirstSteps | None:
    """None when there is nothing to show: dismissed for good, all done, or a member who only looks. One query."""
    if member.hides_first_steps or not Role(member.role).covers(Role.LAUNCHER):
        return None
    own = Q(team=OuterRef("pk"))
    ready = Q(state__in=(Host.State.READY, Host.State.DIRTY, Host.State.DRAINED))
    there = {
        "hosts": Host.objects.filter(own, ready),
        "application": Application.objects.filter(own),
        "recipe": Recipe.objects.filter(own),
        "workload": Workload.objects.filter(own),
        "run": Run.objects.filter(own, state=Run.State.FINISHED),
        "experiment": Experiment.objects.filter(own),
        "member": Member.objects.filter(own).exclude(pk=member.pk),
        "token": Token.objects.filter(own),
    }
    row = Team.objects.filter(pk=member.team_id).values_list(*(Exists(query) for query in there.values()))[0]
    found = dict(zip(there, row, strict=True))
    steps = FirstSteps(
        hosts=found["hosts"],
        documents=found["application"] and found["recipe"] and found["workload"],
        run=found["run"],
        experiment=found["experiment"],
        others=found["member"] or found["token"],
    )
    return None if steps.all_done else steps


def hide_first_steps(member: Member) -> None:
    """Never show them to this member of this team again."""
    member.hides_first_steps = True
    member.save(update_fields=["hides_first_steps"])
