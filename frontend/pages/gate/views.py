"""The gate of an experiment as a page: what CI would be told, by its own rules or by others."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from experiments.judging.gate.decision import experiment_gate, markdown
from experiments.judging.gate.rules import GateRules
from experiments.registry.errors import RequestError
from frontend.pages.gate.forms import GateForm, command_line
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.lookups import find_experiment
from frontend.shared.refusals import refuse


@require_safe
@team_view()
def gate(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """The answer; `?metric=&margin_pct=&inconclusive=&baseline=` asks by other rules, as `benchhub-ci gate` does."""
    found = find_experiment(request, experiment_id)
    form = GateForm(TeamChoices(request.team), request.GET or None)
    rules = GateRules()
    verdict = None
    if form.is_valid():
        rules = form.rules()
    if not form.errors:
        try:
            verdict = experiment_gate(found, rules)
        except RequestError as error:
            if not form.is_bound:
                raise
            refuse(form, error)
    url = request.build_absolute_uri(reverse("experiment", args=[request.team.slug, found.pk]))
    context = {
        "experiment": found,
        "form": form,
        "rules": rules,
        "verdict": verdict,
        "compared": [number for number in verdict.numbers if number.candidate] if verdict else [],
        "command": command_line(found.pk, rules),
        "markdown": markdown(found.name, url, verdict) if verdict else "",
    }
    return render(request, "gate/page.html", context, status=422 if form.errors else 200)
