"""Dry runs: what a run would do on its hosts, command by command, without changing anything there."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from agents.plan import Plan
from experiments.api.choices import DryRunState
from experiments.api.plumbing.auth import LAUNCH, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.setups import SetupIn
from experiments.asking.launching import dryrun
from experiments.models import DryRun
from experiments.registry.errors import NotFound
from experiments.registry.notes.labels import check_labels

router = Router(auth=LAUNCH, tags=["runs"])


class DryRunOut(BaseModel):
    id: int
    state: DryRunState
    plan: Plan | None = Field(description="Each phase with its commands and how they are taken back; null until ready")
    message: str = Field(description="Why there is no plan")
    hint: str
    created_at: datetime

    @classmethod
    def of(cls, dry_run: DryRun) -> DryRunOut:
        return cls(
            id=dry_run.pk,
            state=dry_run.state,
            plan=dry_run.plan,
            message=dry_run.message,
            hint=dry_run.hint,
            created_at=dry_run.created_at,
        )


@router.post("/dry-runs", response={202: DryRunOut})
@idempotent
def start_dry_run(request: HttpRequest, payload: SetupIn) -> Status[DryRunOut]:
    """Let a worker connect to the hosts, read what is there and plan the run; it changes nothing and queues no run."""
    member = member_of(request)
    check_labels(payload.labels)  # a launch of the same body refuses them
    return Status(202, DryRunOut.of(dryrun.request(member, payload.choice(member))))


@router.get("/dry-runs/{int:dry_run_id}", response=DryRunOut)
def get_dry_run(request: HttpRequest, dry_run_id: int) -> DryRunOut:
    """A dry run's plan once it is ready, or why there is none."""
    found = DryRun.objects.for_team(member_of(request).team).filter(pk=dry_run_id).first()
    if found is None:
        raise NotFound("There is no such dry run.")
    return DryRunOut.of(found)
