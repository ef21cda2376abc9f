"""A team's own metrics that are judged and watched unasked: which ones, a person says."""

from __future__ import annotations

from django.db import transaction

from experiments.judging.alerts.trends import rebuild
from experiments.models import Member, Metric, Role, Series
from experiments.registry.errors import NotFound
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record


def follow_metric(member: Member, name: str, *, followed: bool) -> Metric:
    """Follow an own metric, or stop it. Editors may.

    What its histories show already is searched at once, and nobody is told of what is found there. What was found
    stays when it is followed no longer.
    """
    require(member, Role.EDITOR)
    with transaction.atomic():
        own = Metric.objects.for_team(member.team).select_for_update(of=("self",))
        metric: Metric | None = own.filter(name=name.replace("\0", "")).first()
        if metric is None:
            raise NotFound("The team has no metric of its own with this name.")
        if metric.followed == followed:
            return metric
        metric.followed = followed
        metric.save(update_fields=["followed"])
        record(member, "metric.follow" if followed else "metric.unfollow", metric.name)
        if followed:
            for series in Series.objects.for_team(member.team).filter(last_run__metrics__has_key=metric.name):
                rebuild(series)
    return metric
