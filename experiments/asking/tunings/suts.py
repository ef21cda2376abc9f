"""Several equal servers of a tuning search: whether they are equal, before anything is stored."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.asking.launching.choices import Choice
from experiments.models import Host, Member
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.hosts.driver_sets import check_parts
from experiments.registry.teams.access import require_launch_on

MOST_FURTHER = 9
MEMORY_SLACK_RATIO = 0.01
"""Firmware keeps a little of the memory for itself, not the same on each board."""
NAMED_DIFFERENCES = 3


def check_suts(member: Member, choice: Choice, further: Sequence[Host], confirm: Host | None) -> None:
    """RequestError (fields `further_suts`, `confirm_sut`) when they are no servers equal to the SUT of this choice."""
    named = [("further_suts", host) for host in further] + ([("confirm_sut", confirm)] if confirm else [])
    if named and choice.members:
        raise RequestError("A system of several hosts is searched on one SUT: leave this out.", field=named[0][0])
    if len(further) > MOST_FURTHER:
        raise RequestError(f"Give at most {MOST_FURTHER} further servers.", field="further_suts")
    check_parts(choice.sut, choice.drivers, choice.members)
    taken = [choice.sut, *choice.drivers]
    for field, host in named:
        if host.pk in {one.pk for one in taken}:
            raise RequestError(f"{host.name} has a part in this search already; name another host.", field=field)
        if same := next((one for one in taken if host.place and host.place == one.place), None):
            raise RequestError(f"{host.name} leads to the same place as {same.name}; name another host.", field=field)
        _check_part(member, choice, field, host)
        _check_equal(field, choice.sut, host)
        taken.append(host)


def _check_part(member: Member, choice: Choice, field: str, host: Host) -> None:
    """RequestError when it cannot be the SUT of this choice, or is another team's."""
    if host.team_id != member.team_id:
        raise RequestError("All hosts of a search must belong to your team.", field=field)
    try:
        require_launch_on(member, host)
        check_parts(host, choice.drivers)
    except Forbidden:
        raise
    except RequestError as error:
        raise RequestError(error.message, field=field) from error


def _check_equal(field: str, sut: Host, host: Host) -> None:
    """RequestError when the two did not show the same hardware and system the last time that BenchHub looked."""
    for one in (sut, host):
        if one.profile is None:
            raise RequestError(f"Nothing is known of {one.name} yet: test its connection first.", field=field)
    if sut.profile == host.profile or sut.profile is None or host.profile is None:
        return
    mine, other = sut.profile.facts, host.profile.facts
    differing = [name for name in sorted({*mine, *other}) if not _is_same(name, mine.get(name), other.get(name))]
    if not differing:
        return
    named = [f"{name}: {_short(mine.get(name))} and {_short(other.get(name))}" for name in differing]
    said = "; ".join(named[:NAMED_DIFFERENCES])
    more = f"; {len(named) - NAMED_DIFFERENCES} more" if len(named) > NAMED_DIFFERENCES else ""
    raise RequestError(
        f"{host.name} is not equal to {sut.name} ({said}{more}): name servers with the same hardware and system.",
        field=field,
    )


def _is_same(name: str, mine: str | None, other: str | None) -> bool:
    if mine == other:
        return True
    if name != "memory.total_bytes" or mine is None or other is None:
        return False
    return abs(int(mine) - int(other)) <= MEMORY_SLACK_RATIO * max(int(mine), int(other))


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    return text if len(text) <= 60 else text[:59] + "…"
