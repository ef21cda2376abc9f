"""Links from a statistic to the paragraph that explains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.analysis import machine_wording
from experiments.analysis.contrast import Contrast
from experiments.registry.metrics.vocabulary import METRICS, MetricSpec, label_of
from experiments.telling.find.documentation import anchor
from frontend.shared.badges import BADGES

register = template.Library()


@dataclass(frozen=True)
class Explained:
    """A heading of the documentation, as its anchor and in words."""

    anchor: str
    words: str
    topic: str = "verdicts"


EXPLAINED: dict[str, Explained] = {
    "outcomes": Explained("the-outcomes", "What a verdict means"),
    "arithmetic": Explained("the-arithmetic", "How the interval is calculated"),
    "families": Explained("many-comparisons", "Corrected for many comparisons"),
    "ranking": Explained("which-variant-is-the-best", "How they are ranked"),
    "factors": Explained("what-two-factors-do", "What this says"),
    "stopping": Explained("when-to-stop", "When to stop"),
    "aa": Explained("the-baseline-against-itself", "The baseline against itself"),
    "hierarchy": Explained("repetitions-inside-repetitions", "Where the noise comes from"),
    "power": Explained("before-the-launch", "How this is estimated"),
    "compared": Explained("what-is-compared", "What is compared"),
    "validity": Explained("validity-does-this-run-count", "Valid, suspect, invalid", "validity"),
    "restore": Explained("what-benchhub-promises", "What is proven", "reliability"),
    "changes": Explained("how-change-points-are-found", "How change points are found", "history"),
    "alert": Explained("what-an-alert-says", "What an alert says", "history"),
    "rules": Explained("rules-of-your-own", "What breaks a rule", "history"),
    "triage": Explained("what-people-say", "What the states mean", "history"),
    "cpu": Explained("low-cpu-or-high-cpu-beside-a-low-throughput", "What the four mean", "scaling"),
    "machines": Explained("kernel-os-and-memory-as-factors", "What this says", "scaling"),
    "scaling": Explained("what-the-page-says", "What the page says", "scaling"),
    "trial": Explained("a-trial", "When a trial passes", "search"),
    "claim": Explained("the-course-of-a-search", "What is claimed", "tuning"),
    "step": Explained("the-course", "How a step is judged", "bisect"),
}


@register.filter
def metric_label(name: str) -> str:
    """The label of a metric; a team's own is its name."""
    return label_of(name)


@register.filter
def change_text(found: Contrast) -> str:
    """A change with its interval: +3.2 % [−1.0, 7.5]."""
    return machine_wording.change_text(found)


@register.filter
def verdict_words(shown: str) -> str:
    """The word of an outcome as its badge has it."""
    return BADGES["verdict"][shown].text if shown in BADGES["verdict"] else shown


@register.filter
def of_hundred(value_pct: float | None) -> float | None:
    """Per cent as a ratio."""
    return None if value_pct is None else value_pct / 100


@register.simple_tag(takes_context=True)
def explained(context: dict[str, Any], name: str) -> SafeString:
    """A link to the paragraph of the product's help that explains this."""
    found = EXPLAINED[name]
    href = reverse("help", args=[context["request"].team.slug, found.topic])
    return format_html('<a class="small explained" href="{}#{}">{}</a>', href, found.anchor, found.words)


@register.simple_tag(takes_context=True)
def metric_explained(context: dict[str, Any], metric: MetricSpec) -> SafeString:
    """The metric's label as a link to its paragraph in the product's help; a team's own metric has none."""
    if metric.name not in METRICS:
        return format_html("{}", metric.label)
    href = reverse("help", args=[context["request"].team.slug, "figures"])
    return format_html('<a class="explained" href="{}#{}">{}</a>', href, anchor(metric.name), metric.label)
