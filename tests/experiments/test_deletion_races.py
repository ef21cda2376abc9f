"""Something is deleted in the moment in which somebody else begins to refer to it: one of the two is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from experiments.asking.schedules.saving import (
    Plan,
    change_schedule,
    create_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
)
from experiments.keeping.retention.trash import trash_runs
from experiments.models import (
    Annotation,
    AuditEntry,
    Invitation,
    Member,
    PinnedBaseline,
    Run,
    SavedView,
    Schedule,
    Webhook,
)
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.notes.chart_notes import annotate, change, remove
from experiments.registry.runs.baselines import pin, unpin
from experiments.registry.teams.invitations import accept, invite
from experiments.telling.notifying.happenings import RUN_FINISHED
from experiments.telling.notifying.webhooks import (
    Wanted,
    change_webhook,
    create_webhook,
    delete_webhook,
    redeliver,
    rotate_secret,
    send_test,
)
from experiments.telling.run_list.saved_views import change_view, delete_view, open_with, save_view
from tests.frontend.conftest import MakeRun, make_run

__all__ = ["make_run"]  # a fixture of the pages


def at_once(*actions: Callable[[], object]) -> list[str]:
    """Do them at the same time; the names of the errors, "" for none, in the order of the actions."""
    start, came = threading.Barrier(len(actions)), [""] * len(actions)

    def act(place: int) -> None:
        try:
            start.wait()
            actions[place]()
        except Exception as error:
            came[place] = type(error).__name__
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=(place,)) for place in range(len(actions))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return came


@pytest.mark.django_db(transaction=True)
def test_a_run_is_pinned_or_deleted_and_never_both(admin: Member, make_run: MakeRun) -> None:
    for _ in range(5):
        run = make_run(throughput_rps=1000.0)

        def pinned(run: Run = run) -> PinnedBaseline:
            return pin(admin, run, f"release {run.number}")

        def deleted(run: Run = run) -> list[Run]:
            return trash_runs(admin, [run.number])

        came = at_once(pinned, deleted, pinned)
        run.refresh_from_db()
        if run.trashed_at is None:
            assert came == ["", "Conflict", ""]
        else:
            assert came == ["NotFound", "", "NotFound"]
        assert PinnedBaseline.objects.filter(run=run).exists() == (run.trashed_at is None)


def test_what_was_deleted_since_it_was_read_is_not_scheduled(admin: Member, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    trash_runs(admin, [run.number])
    with pytest.raises(RequestError, match="is in the trash"):
        create_schedule(admin, Plan(name="nightly", cron="30 2 * * *", run=run))
    assert not Schedule.objects.exists()


def test_a_baseline_is_unpinned_once(admin: Member, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    first = pin(admin, run, "release")
    again = PinnedBaseline.objects.get(pk=first.pk)
    unpin(admin, first)
    with pytest.raises(NotFound):
        unpin(admin, again)
    assert AuditEntry.objects.filter(action="baseline.unpin").count() == 1


@pytest.mark.parametrize(
    "use",
    [lambda member, view: change_view(member, view, name="other"), open_with, delete_view],
    ids=["change", "open", "delete"],
)
def test_a_view_that_was_deleted_meanwhile_does_not_come_back(admin: Member, use: Callable[..., Any]) -> None:
    view = save_view(admin, "mine", "state=finished")
    delete_view(admin, SavedView.objects.get(pk=view.pk))
    with pytest.raises(NotFound):
        use(admin, view)
    assert not SavedView.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_invitations_taken_at_once_one_makes_the_member(admin: Member) -> None:
    texts = [invite(admin, role).link.rstrip("/").rsplit("/", 1)[1] for role in ("viewer", "editor")]
    grace = User.objects.create_user("grace")
    came = at_once(*(lambda text=text: accept(grace, text) for text in texts))
    assert sorted(came) == ["", "Conflict"]
    taken = Invitation.objects.get(accepted_by=grace)
    assert Member.objects.get(user=grace).role == taken.role


def test_what_was_deleted_meanwhile_is_not_found_whatever_is_done_to_it(admin: Member, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    note = annotate(admin, run, timezone.now(), "here")
    plan = Plan(name="nightly", cron="30 2 * * *", run=run)
    schedule = create_schedule(admin, plan)
    wanted = Wanted("ours", "https://hooks.example.com/", [RUN_FINISHED])
    webhook, _ = create_webhook(admin, wanted)
    delivery = send_test(admin, webhook)
    uses: list[Callable[[], object]] = [
        lambda: change(admin, note, text="there"),
        lambda: remove(admin, note),
        lambda: change_schedule(admin, schedule, plan),
        lambda: pause_schedule(admin, schedule),
        lambda: resume_schedule(admin, schedule),
        lambda: delete_schedule(admin, schedule),
        lambda: change_webhook(admin, webhook, wanted),
        lambda: rotate_secret(admin, webhook),
        lambda: send_test(admin, webhook),
        lambda: delete_webhook(admin, webhook),
        lambda: redeliver(admin, delivery),
    ]
    for model in (Annotation, Schedule, Webhook):
        model._default_manager.all().delete()
    written = AuditEntry.objects.count()
    for use in uses:
        with pytest.raises(NotFound):
            use()
    assert AuditEntry.objects.count() == written
    assert [model._default_manager.count() for model in (Annotation, Schedule, Webhook)] == [0, 0, 0]
