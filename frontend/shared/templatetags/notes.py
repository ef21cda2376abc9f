"""Notes in pages."""

from __future__ import annotations

from html import unescape

from django import template
from django.utils.html import strip_tags
from django.utils.safestring import SafeString, mark_safe

from experiments.registry.notes.notes_html import notes_html

register = template.Library()


@register.filter
def markdown_notes(text: str) -> SafeString:
    """Notes of people as HTML."""
    return mark_safe(notes_html(text))  # noqa: S308 - what people wrote has been escaped there


@register.filter
def notes_line(text: str) -> str:
    """The words of notes in one line, without their mark-up."""
    return " ".join(unescape(strip_tags(notes_html(text))).split())
