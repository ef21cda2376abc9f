"""New experiment, filled in with an installed template of the library."""

from __future__ import annotations

from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import Scale
from experiments.asking.library.install import Places, installed
from experiments.models import Host
from experiments.registry.errors import NotFound
from frontend.pages.new_experiment.forms import ExperimentForm, VariantForm
from frontend.pages.new_experiment.rows import Rows
from frontend.shared.access import TeamRequest
from frontend.shared.forms.choices import HOST_FIELDS, TeamChoices
from frontend.shared.forms.parameters import parameter_text
from frontend.shared.query import id_in

GONE = "A host of this link is not there any more; choose the hosts in the library again."


def template_rows(request: TeamRequest, choices: TeamChoices, name: str) -> tuple[ExperimentForm, Rows]:
    """New experiment filled in with an installed template. NotFound when that or a host is not there."""
    template = catalogue.template(name)
    scale: Scale = "published" if request.GET.get("scale") == "published" else "small"
    ready = installed(request.member, template, scale)
    if ready is None:
        raise NotFound(f"{template.title} is not installed in this team yet; open it in the library.")
    hosts = {role: _hosts(request, role) for role in HOST_FIELDS}
    if len(hosts["sut"]) != 1 or not hosts["drivers"] or len(hosts["drivers"]) != len(request.GET.getlist("drivers")):
        raise NotFound(GONE)
    named = {role: _hosts(request, f"m_{role}") for role in template.roles}
    if not all(len(found) == 1 for found in named.values()):
        raise NotFound(GONE)
    members = {role: host for role, (host,) in named.items()}
    other_sut = next(iter(hosts["other_sut"]), None)
    candidates = ready.candidates(Places(hosts["sut"][0], hosts["drivers"], other_sut, members))
    form = ExperimentForm(
        choices,
        initial={
            "name": template.title,
            "question": template.question,
            "workload": ready.workload.pk,
            "repetitions": template.repetitions,
            "order": template.order,
            "primary_metric": template.metric,
            "margin_pct": round(template.margin_ratio * 100, 4),
            "profilers": template.profilers,
            "labels": {"library": template.name, "scale": scale},
        },
    )
    forms_by_row = {
        str(row): VariantForm(
            choices,
            prefix=f"v{row}",
            initial={
                "name": one.name,
                "application": one.application.pk,
                "recipe": one.recipe.pk,
                "sut": one.sut.pk,
                "drivers": [driver.pk for driver in one.drivers],
                "concurrency": one.concurrency,
                **{f"m_{role}": host.pk for role, host in one.members.items()},
                **{f"p_{key}": parameter_text(value) for key, value in one.parameters.items()},
            },
        )
        for row, one in enumerate(candidates)
    }
    return form, Rows(forms_by_row, "0")


def _hosts(request: TeamRequest, role: str) -> tuple[Host, ...]:
    """The team's hosts that a link names, in its order."""
    wanted = [pk for text in request.GET.getlist(role) if (pk := id_in(text)) is not None]
    found: dict[int, Host] = Host.objects.for_team(request.team).in_bulk(wanted)
    return tuple(found[pk] for pk in wanted if pk in found)
