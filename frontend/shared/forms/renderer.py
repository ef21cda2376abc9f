"""How the inputs of all forms are written."""

from __future__ import annotations

from typing import Any

from django.forms.renderers import DjangoTemplates

BOUNDS = ("min", "max", "step")


class NumbersAsText(DjangoTemplates):
    """Django's own templates, with numbers in text inputs.

    Of `10k` in a number input a browser sends an empty text, which means the default: what ran was not what was typed.
    """

    def render(self, template_name: str, context: dict[str, Any], request: Any = None) -> str:
        widget = context.get("widget", {})
        if widget.get("type") == "number":
            attrs = {name: value for name, value in widget["attrs"].items() if name not in BOUNDS}
            context = context | {"widget": widget | {"type": "text", "attrs": attrs | {"inputmode": "decimal"}}}
        return str(super().render(template_name, context, request))
