"""Link templates in a form: one a line, `name = https://...`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join

from experiments.registry.errors import RequestError
from experiments.registry.teams.link_templates import PLACEHOLDERS, check_templates


class LinkTemplatesField(forms.CharField):
    """Its value is what `check_templates` takes; an error names the line or the link."""

    widget = forms.Textarea(
        attrs={
            "rows": 3,
            "spellcheck": "false",
            "placeholder": "Grafana = https://grafana.example.com/d/node/x?from={from_ms}&to={to_ms}&var-host={host}",
        }
    )

    def __init__(self, shown: str) -> None:
        rows = format_html_join("", "<dt><code>{{{}}}</code></dt><dd>{}</dd>", PLACEHOLDERS.items())
        words = format_html(
            '{} One a line: name = URL. <details><summary>What may stand in it</summary><dl class="facts">{}</dl>'
            "</details>",
            shown,
            rows,
        )
        super().__init__(required=False, label="Links to other tools", help_text=words)

    def clean(self, value: Any) -> list[dict[str, str]]:
        found = []
        for line in filter(None, (part.strip() for part in super().clean(value).splitlines())):
            name, equals, url = (part.strip() for part in line.partition("="))
            if not (equals and name and url):
                raise forms.ValidationError(f"'{line[:80]}' is no link; write name = https://..., one a line.")
            found.append({"name": name, "url": url})
        try:
            return check_templates(found)
        except RequestError as error:
            raise forms.ValidationError(error.message) from error

    def prepare_value(self, value: Any) -> Any:
        is_stored = isinstance(value, Sequence) and not isinstance(value, str)
        return "\n".join(f"{one['name']} = {one['url']}" for one in value) if is_stored else value
