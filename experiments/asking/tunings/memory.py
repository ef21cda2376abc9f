"""Whether the memory that a search may ask for is there, by the last facts of each host. Touches no host."""

from __future__ import annotations

from collections.abc import Mapping

from agents.steps.recipe import UNIT_BYTES, RecipeDocument, Value, references
from experiments.analysis.tuning.space import Parameter, Space
from experiments.models import Host
from experiments.registry.errors import RequestError

GIB = 1 << 30


def check_memory(
    document: RecipeDocument, space: Space, given: Mapping[str, Value], sut: Host, members: Mapping[str, Host]
) -> None:
    """RequestError at the parameter whose upper end, alone or with all others at theirs, is beyond a host's memory.

    A parameter takes what its `memory` says of the hosts whose steps refer to it. Where no facts are known, nothing is
    refused; nor is a sum that a forbidden mixture of these parameters leaves out. `given` are those not searched.
    """
    values = {name: one.default for name, one in document.parameters.items()} | dict(given)
    highest = {one.name: _highest(one) for one in space.parameters}
    for host, names in _takers(document, sut, members).items():
        memory_bytes = _memory_bytes(host)
        taken = {name: _bytes(document, name, highest.get(name, values[name])) for name in names}
        searched = sorted((name for name in taken if name in highest), key=taken.__getitem__)
        if not memory_bytes or not searched:
            continue
        largest, total_bytes = searched[-1], sum(taken.values())
        if taken[largest] > memory_bytes:
            total_bytes, who = taken[largest], f"{largest} = {highest[largest]}"
        elif total_bytes > memory_bytes and not _left_out(space, highest, set(searched)):
            who = f"{largest} = {highest[largest]} with {' and '.join(sorted(set(taken) - {largest}))}"
        else:
            continue
        has = f"{host.name} has {_gib(memory_bytes)}"
        said = f"{who} takes {_gib(total_bytes)} of memory, and {has}: lower the upper end of {largest}."
        raise RequestError(said, field=f"space.{largest}")


def _takers(document: RecipeDocument, sut: Host, members: Mapping[str, Host]) -> dict[Host, set[str]]:
    """Each host of a server with the parameters of memory that the steps meant for it refer to."""
    names: dict[Host, set[str]] = {}
    for role, step in zip(document.roles, document.steps, strict=True):
        used = {name for name in references(step) if name in document.parameters and document.parameters[name].memory}
        names.setdefault(members.get(role, sut), set()).update(used)
    return names


def _left_out(space: Space, highest: Mapping[str, Value], names: set[str]) -> bool:
    """Whether a mixture of nothing but these parameters forbids all of them at their upper ends."""
    mixtures = [one for one in space.forbidden if {name for clause in one for name in clause.names()} <= names]
    return any(all(clause.holds(highest) for clause in one) for one in mixtures)


def _highest(one: Parameter) -> Value:
    numbers = [choice for choice in one.choices if not isinstance(choice, str)]
    return max(numbers) if numbers else one.at(1.0)


def _bytes(document: RecipeDocument, name: str, value: Value | None) -> float:
    unit = UNIT_BYTES[document.parameters[name].memory]
    return max(0.0, float(value)) * unit if isinstance(value, int | float) else 0.0


def _memory_bytes(host: Host) -> int:
    facts = host.profile.facts if host.profile is not None else {}
    return int(facts.get("memory.total_bytes") or 0)


def _gib(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
