"""New tuning search, filled in with an installed one of the library."""

from __future__ import annotations

from typing import Any

from experiments.asking.library import catalogue
from experiments.asking.library.tuning_searches import plan_of
from frontend.pages.tunings.forms import initial_of
from frontend.shared.access import TeamRequest
from frontend.shared.forms.from_library import installed_in_link
from frontend.shared.forms.parameters import parameter_text


def library_initial(request: TeamRequest, name: str) -> dict[str, Any]:
    """What the form begins with. NotFound when the search is not installed, or a host is not there."""
    template = catalogue.tuning(name)
    plan = plan_of(template, *installed_in_link(request, template))
    choice = plan.choice
    initial: dict[str, Any] = {
        "name": plan.name,
        "metric": plan.metric,
        "margin_pct": f"{plan.margin_ratio * 100:g}",
        "budget_runs": plan.budget_runs,
        "labels": dict(plan.labels),
        "drivers": [host.pk for host in choice.drivers],
        **{part: getattr(choice, part).pk for part in ("application", "recipe", "workload", "sut")},
        **{f"m_{role}": host.pk for role, host in choice.members.items()},
        **{f"p_{key}": parameter_text(value) for key, value in choice.parameters.items()},
    }
    for number, limit in enumerate(plan.limits, 1):
        initial |= {f"limit{number}_metric": limit.metric, f"limit{number}_value": f"{limit.at_most:g}"}
    return initial | initial_of(dict(plan.space))
