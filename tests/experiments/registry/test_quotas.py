"""Quotas: what would go beyond one is refused, and the error names it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from experiments.asking.intake.imports import import_reports
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Artifact, AuditEntry, Member, Run, Team
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.hosts.inventory import add_host
from experiments.registry.teams.quotas import QUOTAS, QuotaExceeded, measure_files, set_quotas, usage
from tests.experiments.conftest import MakeMember
from tests.frontend.conftest import MakeRun, make_run

__all__ = ["make_run"]  # a fixture of the pages

WRK = (Path(__file__).parents[2] / "agents" / "cases" / "wrk" / "basic.txt").read_text()


def limit(team: Team, **fields: int) -> None:
    Team.objects.filter(pk=team.pk).update(**fields)


@pytest.mark.parametrize(
    "field, named",
    [("quota_runs_per_day", "runs per day"), ("quota_queued_runs", "waiting in the queue")],
)
def test_a_launch_beyond_the_quota_is_refused(field: str, named: str, admin: Member, stock: dict[str, Any]) -> None:
    choice = Choice(**stock)
    limit(admin.team, **{field: 2})
    first = [launch_run(admin, choice).number for _ in range(2)]
    with pytest.raises(QuotaExceeded, match=named):
        launch_run(admin, choice)
    assert Run.objects.count() == 2
    limit(admin.team, **{field: 3})
    assert launch_run(admin, choice).number == first[-1] + 1  # what was refused used up no number


def test_the_day_ends_at_midnight(admin: Member, stock: dict[str, Any]) -> None:
    yesterday = timezone.now().date() - timedelta(days=1)
    limit(admin.team, quota_runs_per_day=1, runs_on_day=1)
    Team.objects.filter(pk=admin.team_id).update(runs_day=yesterday)
    launch_run(admin, Choice(**stock))
    with pytest.raises(QuotaExceeded, match="midnight UTC"):
        launch_run(admin, Choice(**stock))


def test_files_are_measured_and_stop_launches_and_imports(
    admin: Member,
    stock: dict[str, Any],
    make_run: MakeRun,
) -> None:
    Artifact.objects.create(run=make_run(), name="out", sha256="0", content=b"x" * 1000)
    limit(admin.team, quota_artifact_bytes=1000)
    launch_run(admin, Choice(**stock))  # not measured yet
    measure_files()
    with pytest.raises(QuotaExceeded, match="files of runs"):
        launch_run(admin, Choice(**stock))
    with pytest.raises(QuotaExceeded, match="files of runs"):
        import_reports(admin, kind="wrk", text=WRK)
    Artifact.objects.all().delete()
    measure_files()
    assert import_reports(admin, kind="wrk", text=WRK)[0].number


def test_an_import_counts_for_the_day_and_not_for_the_queue(admin: Member) -> None:
    limit(admin.team, quota_queued_runs=0, quota_runs_per_day=1)
    import_reports(admin, kind="wrk", text=WRK)
    with pytest.raises(QuotaExceeded, match="runs per day"):
        import_reports(admin, kind="wrk", text=WRK)


def test_a_host_beyond_the_quota_is_refused(admin: Member) -> None:
    limit(admin.team, quota_hosts=1)
    given: dict[str, Any] = {"address": "127.0.0.1", "port": 22, "user": "bench", "roles": "both"}
    add_host(admin, name="one", **given)
    with pytest.raises(QuotaExceeded, match="hosts, at most 1"):
        add_host(admin, name="two", **given)


def test_only_staff_change_quotas(admin: Member, make_member: MakeMember) -> None:
    with pytest.raises(Forbidden):
        set_quotas(admin.user, admin, {"quota_hosts": 5})
    admin.user.is_staff = True
    set_quotas(admin.user, admin, {"quota_hosts": 5})
    assert [use.limit for use in usage(admin.team) if use.quota.field == "quota_hosts"] == [5]
    entry = AuditEntry.objects.get(action="quota.set")
    assert (entry.before, entry.after) == ({"quota_hosts": 200}, {"quota_hosts": 5})
    with pytest.raises(RequestError) as refused:
        set_quotas(admin.user, admin, {"quota_hosts": -1})
    assert refused.value.field == "quota_hosts"


def test_usage_shows_every_quota(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))
    found = {use.quota.field: use.used for use in usage(admin.team)}
    assert found == {
        "quota_artifact_bytes": 0,
        "quota_runs_per_day": 1,
        "quota_queued_runs": 1,
        "quota_hosts": 2,
        "quota_live_runs": 0,
    }
    assert set(found) == {quota.field for quota in QUOTAS}
