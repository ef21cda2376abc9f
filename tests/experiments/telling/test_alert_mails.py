"""Mails about alerts: once, to those who asked, and about confirmed changes only."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core import mail

from experiments.judging.alerts import triage as alerts
from experiments.judging.alerts.trends import rebuild
from experiments.models import Alert, Member, Role, Series
from experiments.tasks import watch_trends
from experiments.telling.notifying.alert_mails import tell, tell_waiting
from tests.experiments.trend_runs import AddRun, ago, nights, the_alert


@pytest.fixture
def reader(admin: Member) -> Member:
    admin.user.email = "ada@example.org"
    admin.user.save()
    admin.mails_alerts = True
    admin.save()
    return admin


def test_a_confirmed_change_is_mailed_once_to_those_who_asked(
    add_run: AddRun, reader: Member, make_member: Callable[..., Member], other_admin: Member
) -> None:
    silent = make_member(reader.team, Role.VIEWER, "vera")
    silent.user.email = "vera@example.org"
    silent.user.save()
    nights(add_run, [1000.0] * 12 + [900.0] * 6)

    assert [tell(the_alert().pk), tell(the_alert().pk)] == [1, 0]
    nights(add_run, [900.0] * 3, first_day=18)
    tell_waiting()

    assert [message.to for message in mail.outbox] == [["ada@example.org"]]
    assert "Throughput fell by" in mail.outbox[0].subject
    assert f"/t/perf/alerts/{the_alert().pk}/" in mail.outbox[0].body


def test_what_was_lost_on_the_way_is_told_by_the_watch(add_run: AddRun, reader: Member) -> None:
    nights(add_run, [1000.0] * 12 + [900.0] * 6)
    nights(add_run, [700.0] * 7, first_day=ago(10))

    watch_trends()
    watch_trends()

    subjects = [message.subject for message in mail.outbox]
    assert len(subjects) == Alert.objects.count() == 3
    assert sum("No more data" in subject for subject in subjects) == 1


def test_nobody_is_told_of_what_is_suspected_triaged_or_found_in_old_data(add_run: AddRun, reader: Member) -> None:
    nights(add_run, [1000.0] * 12 + [900.0])
    tell_waiting()
    nights(add_run, [900.0] * 5, first_day=13)
    alerts.triage(reader, the_alert(), state="acknowledged")
    tell_waiting()
    Alert.objects.all().delete()
    rebuild(Series.objects.get())
    tell_waiting()

    assert Alert.objects.count() == 1
    assert mail.outbox == []
