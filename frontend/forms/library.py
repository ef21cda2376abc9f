"""The form that installs a template of the library: scale, hosts and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django import forms

from agents.recipe import Value
from experiments.errors import NotFound, RequestError
from experiments.library import catalogue
from experiments.library.catalogue import ExperimentTemplate, Scale
from experiments.library.install import Places, installed
from experiments.models import Host, Team
from frontend.access import TeamRequest
from frontend.forms.choices import TeamChoices
from frontend.forms.launching import ExperimentForm, VariantForm
from frontend.forms.model_fields import show_scalar
from frontend.forms.parameters import parameter_field
from frontend.forms.variants import Rows
from frontend.query import id_in

SCALES = (("small", "small: fits a machine with two CPUs"), ("published", "published: the values of the source"))


class InstallForm(forms.Form):
    """Settings are fields `s_NAME`; empty ones take the value of the scale."""

    scale_choice = forms.ChoiceField(label="Scale", choices=SCALES, initial="small")
    sut = forms.ModelChoiceField(Host.objects.none(), label="SUT", empty_label="Choose…")
    other_sut = forms.ModelChoiceField(Host.objects.none(), label="Second SUT", empty_label="Choose…")
    driver = forms.ModelChoiceField(Host.objects.none(), label="Driver host", empty_label="Choose…")

    def __init__(self, team: Team, template: ExperimentTemplate, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        self.template = template
        if not template.two_suts:
            del self.fields["other_sut"]
        choices = TeamChoices(team)
        for name in ("sut", "other_sut", "driver"):
            if name in self.fields:
                field = cast("forms.ModelChoiceField[Any]", self.fields[name])
                choices.fill(field, "driver" if name == "driver" else "sut", "")
                offered = [value for value, _ in cast("list[tuple[str, str]]", field.choices) if value]
                position = 1 if name == "other_sut" else 0
                if len(offered) > position:
                    field.initial = offered[position]
        for name, setting in sorted(template.settings().items()):
            self.fields[f"s_{name}"] = parameter_field(name, setting)

    @property
    def scale(self) -> Scale:
        chosen = self.cleaned_data.get("scale_choice") if self.is_bound else None
        return "published" if chosen == "published" else "small"

    @property
    def host_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("sut", "other_sut", "driver") if name in self.fields]

    @property
    def needed_fields(self) -> list[forms.BoundField]:
        """Settings without a default."""
        return [self[f"s_{name}"] for name, one in sorted(self.template.settings().items()) if one.default is None]

    @property
    def other_fields(self) -> list[forms.BoundField]:
        return [self[f"s_{name}"] for name, one in sorted(self.template.settings().items()) if one.default is not None]

    def given(self) -> dict[str, Value]:
        """The settings that were filled in."""
        values = {name: self.cleaned_data.get(f"s_{name}") for name in self.template.settings()}
        return {name: value for name, value in values.items() if value not in (None, "")}

    def places(self) -> Places | None:
        """The chosen hosts, None while one is missing."""
        sut, driver = self.cleaned_data.get("sut"), self.cleaned_data.get("driver")
        return Places(sut, driver, self.cleaned_data.get("other_sut")) if sut and driver else None

    def host_ids(self) -> dict[str, int]:
        return {field.name: self.cleaned_data[field.name].pk for field in self.host_fields}

    def refuse(self, error: RequestError) -> None:
        """Show an error at the field that it names."""
        name = error.field.replace("settings.", "s_")
        self.add_error(name if name in self.fields else None, error.message)


def template_rows(request: TeamRequest, choices: TeamChoices, name: str) -> tuple[ExperimentForm, Rows]:
    """New experiment filled in with an installed template. NotFound when that or a host is not there."""
    template = catalogue.template(name)
    scale: Scale = "published" if request.GET.get("scale") == "published" else "small"
    ready = installed(request.member, template, scale)
    if ready is None:
        raise NotFound(f"{template.title} is not installed in this team yet; open it in the library.")
    hosts = {role: _host(request, role) for role in ("sut", "driver", "other_sut")}
    sut, driver = hosts["sut"], hosts["driver"]
    if sut is None or driver is None:
        raise NotFound("A host of this link is not there any more; choose the hosts in the library again.")
    candidates = ready.candidates(Places(sut, driver, hosts["other_sut"]))
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
                **{f"p_{key}": show_scalar(value) for key, value in one.parameters.items()},
            },
        )
        for row, one in enumerate(candidates)
    }
    return form, Rows(forms_by_row, "0")


def _host(request: TeamRequest, role: str) -> Host | None:
    found: Host | None = Host.objects.for_team(request.team).filter(pk=id_in(request.GET.get(role, ""))).first()
    return found
