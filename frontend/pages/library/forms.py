"""The form that installs a template of the library: scale, hosts and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django import forms

from agents.steps.recipe import Value
from experiments.asking.library.catalogue import ExperimentTemplate, Scale
from experiments.asking.library.install import Places
from experiments.models import Host, Team
from experiments.registry.errors import RequestError
from frontend.shared.forms.choices import HOST_FIELDS, TeamChoices
from frontend.shared.forms.parameters import parameter_field

SCALES = (("small", "small: fits a machine with two CPUs"), ("published", "published: the values of the source"))


class InstallForm(forms.Form):
    """Settings are fields `s_NAME`, empty ones take the value of the scale; hosts of further members `m_ROLE`."""

    scale_choice = forms.ChoiceField(label="Scale", choices=SCALES, initial="small")
    sut = forms.ModelChoiceField(Host.objects.none(), label="SUT", empty_label="Choose…")
    other_sut = forms.ModelChoiceField(Host.objects.none(), label="Second SUT", empty_label="Choose…")
    drivers = forms.ModelMultipleChoiceField(
        Host.objects.none(),
        label="Driver hosts",
        help_text="Several divide the load and begin together. Ctrl or ⌘ chooses more than one.",
        widget=forms.SelectMultiple(attrs={"size": 3}),
    )

    def __init__(self, team: Team, template: ExperimentTemplate, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        self.template = template
        if not template.two_suts:
            del self.fields["other_sut"]
        choices = TeamChoices(team)
        for name in HOST_FIELDS:
            if name in self.fields:
                field = cast("forms.ModelChoiceField[Any]", self.fields[name])
                choices.fill(field, "drivers" if name == "drivers" else "sut", "")
                offered = [value for value, _ in cast("list[tuple[str, str]]", field.choices) if value]
                position = 1 if name == "other_sut" else 0
                if len(offered) > position:
                    field.initial = offered[position : position + 1] if name == "drivers" else offered[position]
        for position, role in enumerate(template.roles, start=1):
            label = f"Host of {role}"
            member: forms.ModelChoiceField[Any] = forms.ModelChoiceField(
                Host.objects.none(), label=label, empty_label="Choose…"
            )
            self.fields[f"m_{role}"] = member
            choices.fill(member, "sut", "")
            others = [value for value, _ in cast("list[tuple[str, str]]", member.choices) if value][position:]
            member.initial = next(iter(others), None)
        for name, setting in sorted(template.settings().items()):
            self.fields[f"s_{name}"] = parameter_field(name, setting)

    @property
    def scale(self) -> Scale:
        chosen = self.cleaned_data.get("scale_choice") if self.is_bound else None
        return "published" if chosen == "published" else "small"

    @property
    def host_fields(self) -> list[forms.BoundField]:
        names = (*HOST_FIELDS, *(f"m_{role}" for role in self.template.roles))
        return [self[name] for name in names if name in self.fields]

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
        sut = self.cleaned_data.get("sut")
        drivers = tuple(self.cleaned_data.get("drivers") or ())
        members = {role: host for role in self.template.roles if (host := self.cleaned_data.get(f"m_{role}"))}
        return Places(sut, drivers, self.cleaned_data.get("other_sut"), members) if sut and drivers else None

    def clean_drivers(self) -> list[Host]:
        return sorted(self.cleaned_data["drivers"], key=lambda host: host.pk)

    def host_ids(self) -> dict[str, list[int]]:
        chosen = {field.name: self.cleaned_data[field.name] for field in self.host_fields}
        return {
            name: [one.pk for one in ([found] if isinstance(found, Host) else found)] for name, found in chosen.items()
        }

    def refuse(self, error: RequestError) -> None:
        """Show an error at the field that it names."""
        name = error.field.replace("settings.", "s_")
        self.add_error(name if name in self.fields else None, error.message)
