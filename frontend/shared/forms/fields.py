"""Fields that several forms have: labels, priority, retries, secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from agents.profilers.choosing import CHOICES
from experiments.models import Run
from experiments.registry.errors import RequestError
from experiments.registry.notes.labels import check_labels
from experiments.running.queue.priorities import MAX_RETRIES, PRIORITIES, name_of


def typed_label_list(text: str) -> dict[str, str]:
    """`key=value` lines as a mapping. ValidationError names the line that is none."""
    labels = {}
    for line in filter(None, (part.strip() for part in text.replace(",", "\n").splitlines())):
        key, equals, value = (part.strip() for part in line.partition("="))
        if not (equals and key and value):
            raise forms.ValidationError(f"'{line}' is no label; write key=value, one per line.")
        labels[key] = value
    try:
        return check_labels(labels)
    except RequestError as error:
        raise forms.ValidationError(error.message) from error


class LabelsField(forms.CharField):
    """Labels as `key=value` lines."""

    widget = forms.Textarea(attrs={"rows": 2, "placeholder": "commit=4f2c9d1", "spellcheck": "false"})

    def clean(self, value: Any) -> dict[str, str]:
        return typed_label_list(super().clean(value))

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else value


class PriorityField(forms.ChoiceField):
    """low, normal or high; its value is the model's number."""

    def __init__(self) -> None:
        super().__init__(
            choices=[(name, name) for name in PRIORITIES],
            initial="normal",
            help_text="High needs the role editor; low lets all others go first.",
        )

    def clean(self, value: Any) -> Run.Priority:
        return PRIORITIES[super().clean(value or self.initial)]

    def prepare_value(self, value: Any) -> Any:
        return name_of(value) if isinstance(value, int) else value


class ProfilersField(forms.MultipleChoiceField):
    """Profilers by name; the choice says which servers each is for."""

    widget = forms.SelectMultiple(attrs={"size": 4})

    def __init__(self, help_text: str) -> None:
        choices = [(name, f"{name}: {one.profiler.of}") for name, one in CHOICES.items()]
        super().__init__(choices=choices, required=False, help_text=help_text)


class RetriesField(forms.IntegerField):
    """How often a run is queued again by itself."""

    def __init__(self, initial: int) -> None:
        super().__init__(
            min_value=0,
            max_value=MAX_RETRIES,
            initial=initial,
            help_text="Tried again when a host or BenchHub fails, never when the run itself is wrong.",
        )

    def clean(self, value: Any) -> int:
        return int(super().clean(value or self.initial) or 0)


class SecretField(forms.CharField):
    """What is stored encrypted and never shown again."""

    widget = forms.PasswordInput(attrs={"autocomplete": "off"})


def tell_of_stored(secret: forms.Field) -> None:
    """Add to the field's help that an empty one keeps the stored one."""
    secret.help_text = f"{secret.help_text} Empty keeps the stored one."
