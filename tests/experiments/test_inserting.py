"""Objects that are stored by a constant statement instead of Django's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models import Model

from experiments.models import Artifact, AuditEntry, Member, Run
from experiments.models.inserting import insert

pytestmark = pytest.mark.django_db

ODD = "é \"quoted\" 'single' \\ back\tslash\n,{}%s NULL"


def run(member: Member, number: int) -> Run:
    return Run(
        team=member.team,
        number=number,
        created_by=member.user,
        state=Run.State.FINISHED,
        labels={"text": ODD, "none": None, "deep": [1, 2.5, True, {"": []}]},
        tags=[ODD, "b"],
        notes=ODD,
        hides_latency=True,
        finished_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        throughput_rps=0.1 + 0.2,
        metrics={"throughput_rps": 1e-300, "errors_total": 3.0},
    )


def entry(member: Member, number: int) -> AuditEntry:
    before, after = {"text": ODD, "number": number}, None
    return AuditEntry(team=member.team, actor=member.user, action="a", subject=ODD, before=before, after=after)


def artifact(member: Member, number: int) -> Artifact:
    owner = run(member, number)
    owner.save()
    return Artifact(run=owner, name=ODD, sha256="0" * 64, content=bytes(range(256)))


@pytest.mark.parametrize("make", [run, entry, artifact])
def test_what_is_read_back_is_what_was_given_as_after_djangos_own_save(
    make: Callable[[Member, int], Model], admin: Member
) -> None:
    by_django, *inserted = (make(admin, number) for number in (1, 2, 3))
    by_django.save()
    insert(inserted)

    assert [one.pk for one in inserted] == sorted(one.pk for one in inserted)
    for one in (by_django, *inserted):
        assert values(type(one)._default_manager.get(pk=one.pk)) == values(one)
        assert one._state.adding is False


def values(one: Model) -> dict[str, Any]:
    found = {field.name: field.value_from_object(one) for field in one._meta.concrete_fields}
    return {name: bytes(value) if isinstance(value, memoryview) else value for name, value in found.items()}
