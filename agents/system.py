"""A system of several hosts: the members of an application beside the server that is loaded, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from agents.base.model import Frozen
from agents.servers import AnyServer

LOADED = "sut"
"""The role of the server that is loaded, whatever the application calls it."""
MAX_MEMBERS = 8
# Samples are stored by role, so a role is as short as their column.
MEMBER_PATTERN = r"[a-z][a-z0-9_]{0,11}"

_REFERENCE = re.compile(rf"\$\{{\s*({MEMBER_PATTERN})\.(address|port)\s*\}}(:?)")


def _free_name(role: str) -> str:
    if role in (LOADED, "server") or role.startswith("driver"):
        raise ValueError(f"'{role}' is BenchHub's own word; call the member by its part, such as database")
    return role


def _free_name_or_none(role: str) -> str:
    return _free_name(role) if role else role


OwnRole = Annotated[str, Field(pattern=rf"^(?:{MEMBER_PATTERN})?$"), AfterValidator(_free_name_or_none)]
"""What the loaded server is among the members, "" where it has no name."""
MemberRole = Annotated[str, Field(pattern=rf"^{MEMBER_PATTERN}$"), AfterValidator(_free_name)]
"""What a member is in its system: database, cache, proxy, or any other name."""


class MemberServer(Frozen):
    """A server of the system besides the one that is loaded, on a host of its own or with CPUs of its own."""

    role: MemberRole
    server: AnyServer
    after: tuple[str, ...] | None = Field(
        None,
        max_length=MAX_MEMBERS,
        description="The members that must be ready before this one starts. Not given: those whose address it uses.",
    )


def insist_on_a_system(own_role: str, server: Any, members: tuple[MemberServer, ...]) -> None:
    """ValueError for roles that are given twice or unknown, and for members that wait for each other."""
    if not members:
        if own_role:
            raise ValueError("role: it names the loaded server among members, and there are none")
        return
    roles = [own_role or LOADED, *(member.role for member in members)]
    if twice := next((role for role in roles if roles.count(role) > 1), None):
        raise ValueError(f"members: two of them are called {twice}")
    known = {LOADED, *roles}
    for place, holder in (("server", server), *((f"members.{member.role}", member.server) for member in members)):
        if unknown := next((role for role in _named_in(holder) if role not in known), None):
            raise ValueError(f"{place}: ${{{unknown}.address}} names no member; there are {', '.join(roles)}")
    for member in members:
        for role in member.after or ():
            if role not in known - {member.role}:
                raise ValueError(f"members.{member.role}.after: {role} is no other member of {', '.join(roles)}")
    start_order(own_role, members)


def start_order(own_role: str, members: tuple[MemberServer, ...]) -> tuple[str, ...]:
    """All roles, the loaded server's as `sut`, each behind those that it waits for.

    The loaded server waits for every member that does not wait for it. ValueError when some wait for each other.
    """
    waits = awaited(own_role, members)
    try:
        return tuple(TopologicalSorter(waits).static_order())
    except CycleError as error:
        circle = ", ".join(dict.fromkeys(own_role or LOADED if one == LOADED else one for one in error.args[1]))
        raise ValueError(f"members: {circle} wait for each other; say with `after` which one starts first") from None


def awaited(own_role: str, members: tuple[MemberServer, ...]) -> dict[str, tuple[str, ...]]:
    """Role -> the roles that must be ready before it starts; the loaded server is `sut`."""

    def plain(roles: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(LOADED if role == own_role else role for role in roles))

    waits = {
        member.role: plain(
            role for role in (_named_in(member.server) if member.after is None else member.after) if role != member.role
        )
        for member in members
    }
    behind = {LOADED}  # those that wait for the loaded server, also by way of others
    while more := {role for role, roles in waits.items() if role not in behind and behind.intersection(roles)}:
        behind |= more
    return {**waits, LOADED: tuple(role for role in waits if role not in behind)}


def places_of(own_role: str, server: Any, members: tuple[MemberServer, ...], addresses: Mapping[str, str]) -> Places:
    """Where each member is reached: `addresses` are those of the hosts by role, the loaded server's as `sut`."""
    ports = {LOADED: server.port, **{member.role: member.server.port for member in members}}
    found = {role: (addresses[role], int(port)) for role, port in ports.items()}
    return found | ({own_role: found[LOADED]} if own_role else {})


Places = Mapping[str, tuple[str, int]]
"""Role -> address and port."""


def with_places(body: Any, places: Places) -> Any:
    """JSON data with every `${ROLE.address}` and `${ROLE.port}` of these roles in its texts replaced.

    An IPv6 address with a port behind it gets its brackets.
    """
    if isinstance(body, Mapping):
        return {key: with_places(child, places) for key, child in body.items()}
    if isinstance(body, list | tuple):
        return [with_places(child, places) for child in body]
    if not isinstance(body, str):
        return body

    def said(match: re.Match[str]) -> str:
        role, what, colon = match.groups()
        if role not in places:
            return match[0]
        address, port = places[role]
        if what == "port":
            return f"{port}{colon}"
        return f"[{address}]:" if colon and ":" in address else f"{address}{colon}"

    return _REFERENCE.sub(said, body)


def _named_in(server: Any) -> tuple[str, ...]:
    """The members whose address or port a server uses."""
    texts = _texts(server.model_dump(mode="json"))
    return tuple(dict.fromkeys(match[1] for text in texts for match in _REFERENCE.finditer(text)))


def _texts(node: Any) -> Iterable[str]:
    if isinstance(node, Mapping):
        for child in node.values():
            yield from _texts(child)
    elif isinstance(node, list):
        for child in node:
            yield from _texts(child)
    elif isinstance(node, str):
        yield node
