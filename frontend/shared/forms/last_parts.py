"""What a form begins with: the parts of a run that was launched before."""

from __future__ import annotations

from typing import Any

from experiments.models import Run
from frontend.shared.access import TeamRequest
from frontend.shared.forms.parameters import parameter_text


def last_parts(request: TeamRequest) -> dict[str, Any]:
    """The parts of the member's last run; nothing before the first one."""
    runs = Run.objects.for_team(request.team).filter(origin=Run.Origin.EXECUTED, created_by=request.user)
    run = runs.order_by("-number").first()
    return parts_of(run) if run else {}


def parts_of(run: Run) -> dict[str, Any]:
    """The parts of a run, by the names of the form's fields."""
    parts: dict[str, Any] = {name: getattr(run, f"{name}_id") for name in ("application", "recipe", "workload", "sut")}
    parts["drivers"] = [host.pk for host in run.drivers.in_order] if run.drivers else []
    parts |= {f"m_{role}": pk for role, pk in run.drivers.member_ids.items()} if run.drivers else {}
    given = run.spec["recipe"]["parameters"] if run.spec else {}
    return parts | {f"p_{name}": parameter_text(value) for name, value in given.items()}
