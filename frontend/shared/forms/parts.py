"""What a run is made of, as a form: for one run, a variant of an experiment, a search, a bisection, a tuning search."""

from __future__ import annotations

import json
from typing import Any, cast

from django import forms
from django.urls import reverse

from agents.steps.recipe import Value
from experiments.models import Application, Host, Recipe
from frontend.shared.api_call import versioned
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.parameters import parameter_field

CHOICE_FIELDS = ("application", "recipe", "workload", "sut", "drivers")


class PartsForm(forms.Form):
    """Application, recipe with its parameters, and hosts.

    Parameter fields are named `p_<parameter>`, those of the hosts of a system's further members `m_<role>`.
    """

    application = forms.ModelChoiceField(Application.objects.none(), empty_label="Choose…")
    recipe = forms.ModelChoiceField(Recipe.objects.none(), empty_label="Choose…")
    sut = forms.ModelChoiceField(Host.objects.none(), label="SUT", empty_label="Choose…")
    drivers = forms.ModelMultipleChoiceField(
        Host.objects.none(),
        label="Driver hosts",
        help_text="Several divide the load and begin together. Ctrl or ⌘ chooses more than one.",
        widget=forms.SelectMultiple(attrs={"size": 3}),
    )

    def __init__(self, choices: TeamChoices, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in CHOICE_FIELDS:
            if name in self.fields:
                choices.fill(cast("forms.ModelChoiceField[Any]", self.fields[name]), name, *self._all_chosen(name))
        chosen = [self.add_prefix(name) for name in ("application", "recipe")]
        for name in ("application", "recipe"):
            self.fields[name].widget.attrs |= {
                "hx-get": reverse("run_parameters", args=[choices.team.slug]),
                "hx-trigger": "change",
                "hx-target": f"#{self.parameters_id}",
                "hx-include": ", ".join(f"[name='{one}']" for one in chosen),
                "hx-vals": json.dumps({"prefix": self.prefix or ""}),
            }
        document = choices.recipe_document(self._chosen("recipe"))
        self.parameters = dict(document.parameters) if document else {}
        for name, parameter in sorted(self.parameters.items()):
            self.fields[f"p_{name}"] = parameter_field(name, parameter)
        self.roles = choices.member_roles(self._chosen("application"))
        for role in self.roles:
            field = forms.ModelChoiceField(Host.objects.none(), label=f"Host of {role}", empty_label="Choose…")
            self.fields[f"m_{role}"] = field
            choices.fill(field, "sut", *self._all_chosen(f"m_{role}"))

    @property
    def parameters_id(self) -> str:
        """The element that holds the parameter fields."""
        return f"parameters-{self.prefix or 'run'}"

    def given(self) -> dict[str, Value]:
        """The parameters that differ from their defaults."""
        values = {name: self.cleaned_data.get(f"p_{name}") for name in self.parameters}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value != self.parameters[name].default
        }

    def members(self) -> dict[str, Host]:
        """Role -> host of each further member of the application."""
        return {role: self.cleaned_data[f"m_{role}"] for role in self.roles}

    def api_parts(self) -> dict[str, Any]:
        """The parts as the API names them: documents by version, so that the call means the same tomorrow."""
        parts: dict[str, Any] = {name: versioned(self.cleaned_data[name]) for name in ("application", "recipe")}
        parts |= {"sut": self.cleaned_data["sut"].name}
        parts |= {"drivers": [host.name for host in self.cleaned_data["drivers"]]}
        if members := self.members():
            parts["members"] = {role: host.name for role, host in members.items()}
        if given := self.given():
            parts["parameters"] = given
        return parts

    @property
    def parameter_fields(self) -> list[forms.BoundField]:
        return [self[f"p_{name}"] for name in sorted(self.parameters)]

    @property
    def member_fields(self) -> list[forms.BoundField]:
        return [self[f"m_{role}"] for role in self.roles]

    def clean_drivers(self) -> list[Host]:
        """In the order that a set of driver hosts has (`hosts.driver_sets`)."""
        return sorted(self.cleaned_data["drivers"], key=lambda host: host.pk)

    def _chosen(self, name: str) -> str:
        return next(iter(self._all_chosen(name)), "")

    def _all_chosen(self, name: str) -> list[str]:
        field = self.fields[name]
        value = (
            field.widget.value_from_datadict(self.data, self.files, self.add_prefix(name))
            if self.is_bound
            else self.get_initial_for_field(field, name)
        )
        values = value if isinstance(value, list | tuple) else [value]
        return [str(getattr(one, "pk", one)) for one in values if one]
