"""What a launch consists of, flat and comparable: two equal contents are "nothing changed"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.asking.launching.choices import Choice
from experiments.models import Experiment, Host, Variant

_UNSEEN = "not seen yet"
_MOST_SHOWN = 5
_CHARS = 80


def contents_of_experiment(experiment: Experiment) -> dict[str, str]:
    """Documents, parameters, hosts and labels of a draft that was just made."""
    found = {f"label {name}": value for name, value in experiment.labels.items()}
    found["workload"] = str(experiment.workload)
    variants = experiment.variants.select_related("application", "recipe", "sut__profile", "drivers").prefetch_related(
        "drivers__hosts__profile"
    )
    for variant in variants:
        parts = {
            "application": str(variant.application),
            "recipe": str(variant.recipe),
            "parameters": _text(variant.parameters),
            **_own_load(variant),
            **_host("SUT", variant.sut),
            **_drivers(variant.drivers.in_order),
            **_members(variant.drivers.members),
        }
        found |= {f"{name} of {variant.name}": value for name, value in parts.items()}
    return found


def contents_of_choice(choice: Choice, labels: Mapping[str, str]) -> dict[str, str]:
    """The same of one run."""
    return {
        **{f"label {name}": value for name, value in labels.items()},
        "application": str(choice.application),
        "recipe": str(choice.recipe),
        "workload": str(choice.workload),
        "parameters": _text(choice.parameters),
        **_own_load(choice),
        **_host("SUT", choice.sut),
        **_drivers(choice.drivers),
        **_members(choice.members),
    }


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What differs, one short text each; the first few and the number of the rest."""
    found = []
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, "none"), after.get(name, "none")
        if old not in (new, _UNSEEN):  # what is seen first has not changed
            found.append(f"{name} {old[:_CHARS]} → {new[:_CHARS]}")
    if len(found) > _MOST_SHOWN:
        return [*found[:_MOST_SHOWN], f"{len(found) - _MOST_SHOWN} more"]
    return found


def _drivers(hosts: Sequence[Host]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, host in enumerate(hosts, start=1):
        found |= _host("driver host" if number == 1 else f"driver host {number}", host)
    return found


def _members(hosts: Mapping[str, Host]) -> dict[str, str]:
    found: dict[str, str] = {}
    for role, host in hosts.items():
        found |= _host(role, host)
    return found


def _own_load(chosen: Variant | Choice) -> dict[str, str]:
    """Where the load is not the workload's; nothing is said of what is, as in the contents stored before."""
    own = {"offered rate": chosen.offered_rate_rps, "concurrency": chosen.concurrency}
    return {name: f"{value:.12g}" for name, value in own.items() if value is not None}


def _host(role: str, host: Host) -> dict[str, str]:
    """The host, and its hardware profile: CPUs, memory, kernel, JDKs as they were last seen."""
    return {
        role: f"{host.name} ({host.address})",
        f"profile of the {role}": host.profile.digest[:12] if host.profile else _UNSEEN,
    }


def _text(parameters: Mapping[str, Any]) -> str:
    return json.dumps(parameters, sort_keys=True)
