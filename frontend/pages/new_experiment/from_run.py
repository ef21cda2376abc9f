"""New experiment, filled in with a run: it is the baseline, and a copy beside it waits for what is to differ."""

from __future__ import annotations

from experiments.models import Run
from experiments.registry.documents.own_load import OWN_LOAD, own_load
from experiments.registry.errors import NotFound
from frontend.pages.new_experiment.forms import ExperimentForm, VariantForm
from frontend.pages.new_experiment.rows import Rows
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.last_parts import parts_of


def run_rows(choices: TeamChoices, run: Run) -> tuple[ExperimentForm, Rows]:
    """The form with the run's workload, load, parameters and hosts. NotFound for figures that nobody ran here."""
    if not run.spec or run.origin != Run.Origin.EXECUTED:
        raise NotFound(f"Run #{run.number} has no settings to begin with: its figures come from elsewhere.")
    parts = parts_of(run) | dict(zip(OWN_LOAD, own_load(run.spec), strict=True))
    forms = {
        str(row): VariantForm(choices, prefix=f"v{row}", initial=parts | {"name": name})
        for row, name in enumerate((f"as run #{run.number}", "changed"))
    }
    labels = {key: value for key, value in run.labels.items() if key not in ("commit", "branch")}
    first = {"name": f"From run #{run.number}", "workload": parts["workload"], "labels": labels}
    return ExperimentForm(choices, initial=first), Rows(forms, "0")
