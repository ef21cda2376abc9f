"""Notes in pages."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString, mark_safe

from experiments.runs.notes_html import notes_html

register = template.Library()


@register.filter
def markdown_notes(text: str) -> SafeString:
    """Notes of people as HTML."""
    return mark_safe(notes_html(text))  # noqa: S308 - what people wrote has been escaped there
