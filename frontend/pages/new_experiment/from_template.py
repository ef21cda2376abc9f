"""New experiment, filled in with an installed template of the library."""

from __future__ import annotations

from experiments.asking.library import catalogue
from frontend.pages.new_experiment.forms import ExperimentForm, VariantForm
from frontend.pages.new_experiment.rows import Rows
from frontend.shared.access import TeamRequest
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.from_library import installed_in_link
from frontend.shared.forms.parameters import parameter_text


def template_rows(request: TeamRequest, choices: TeamChoices, name: str) -> tuple[ExperimentForm, Rows]:
    """New experiment filled in with an installed template. NotFound when that or a host is not there."""
    template = catalogue.template(name)
    ready, places = installed_in_link(request, template)
    candidates = ready.candidates(places)
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
            "labels": {"library": template.name, "scale": ready.scale},
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
