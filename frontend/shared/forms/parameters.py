"""The input of a recipe's parameter."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.steps.recipe import Parameter
from frontend.shared.forms.model_fields import label_of, show_scalar

EMPTY_TEXT = '""'
"""How a text of no letters is written: an input that is left empty means the default."""


class TextParameter(forms.CharField):
    """A text, which may be one of no letters."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(empty_value=None, **kwargs)

    def clean(self, value: Any) -> Any:
        return "" if str(value).strip() == EMPTY_TEXT else super().clean(value)


TYPES = {"int": forms.IntegerField, "float": forms.FloatField, "str": TextParameter}


def parameter_text(value: object) -> str:
    """A parameter's value as it stands in its input."""
    return EMPTY_TEXT if value == "" else show_scalar(value)


def parameter_field(name: str, parameter: Parameter) -> forms.Field:
    """The input of a recipe's parameter."""
    default = parameter.default
    shown = parameter_text(default)
    bounds = [
        f"{word} {bound:.12g}"
        for word, bound in (("at least", parameter.minimum), ("at most", parameter.maximum))
        if bound is not None
    ]
    # An obligatory text is about something; only where leaving it empty means the default is there a doubt.
    may_be_empty = parameter.type == "str" and not parameter.choices and default is not None
    empty = f"{EMPTY_TEXT} stands for an empty text" if may_be_empty else ""
    common: dict[str, Any] = {
        "label": label_of(name),
        "required": default is None,
        "help_text": " · ".join(filter(None, (parameter.description, ", ".join(bounds), empty))),
    }
    if parameter.choices or parameter.type == "bool":
        options = parameter.choices or (True, False)
        texts = {parameter_text(option): option for option in options}
        first = [("", f"default ({shown})")] if default is not None else [("", "Choose…")]
        return forms.TypedChoiceField(
            choices=[*first, *((text, text) for text in texts)], coerce=texts.__getitem__, empty_value=None, **common
        )
    if parameter.type in ("int", "float"):
        common |= {"min_value": parameter.minimum, "max_value": parameter.maximum}
        common["error_messages"] = dict.fromkeys(("min_value", "max_value"), f"Must be {' and '.join(bounds)}.")
    field: forms.Field = TYPES[parameter.type](**common)
    if default is not None:
        field.widget.attrs["placeholder"] = shown
    return field
