"""The rate that stands for a run: requests/s, or in the unit of a tool that measures something else."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import Context

from experiments.models import Run
from experiments.registry.metrics.own_metrics import standing_metrics
from experiments.registry.metrics.vocabulary import THROUGHPUT, MetricSpec
from frontend.shared.templatetags.units import DASH, in_unit, rps

register = template.Library()


@register.simple_tag(takes_context=True)
def rate(context: Context, run: Run) -> str:
    """154,479 of requests/s, which is what most runs have; 1,234 transactions/s of a run that has none."""
    if run.throughput_rps is not None:
        return rps(run.throughput_rps)
    metric = _standing(context, run)
    return in_unit(run.metrics[metric.name], metric.unit) if metric else DASH


@register.simple_tag(takes_context=True)
def whole_rate(context: Context, run: Run) -> str:
    """The same with its unit in any case; empty without a figure."""
    if run.throughput_rps is not None:
        return f"{rps(run.throughput_rps)} requests/s"
    metric = _standing(context, run)
    return in_unit(run.metrics[metric.name], metric.unit) if metric else ""


def _standing(context: Context, run: Run) -> MetricSpec | None:
    """The first metric that stands for the run; asked once for a page and a set of figures."""
    names = frozenset(run.metrics or ())
    if not names or THROUGHPUT in names:
        return None
    request: Any = context["request"]
    known: dict[frozenset[str], MetricSpec | None] = request.__dict__.setdefault("_standing", {})
    if names not in known:
        known[names] = next(iter(standing_metrics(run.team_id, names)), None)
    return known[names]
