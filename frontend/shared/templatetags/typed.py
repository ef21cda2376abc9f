"""Forms that show again what was typed into them when it was refused."""

from __future__ import annotations

from django import template
from django.template.context import RequestContext

from frontend.shared.typed import Typed, take_typed

register = template.Library()


@register.simple_tag(takes_context=True)
def typed_into(context: RequestContext, address: str) -> Typed | None:
    """What was typed into the form with this action, when that was refused a moment ago."""
    return take_typed(context["request"], address)
