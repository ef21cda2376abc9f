"""A made-up system of several hosts, and the events of a run of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agents import events as e
from agents.events import AnyEvent
from experiments.models import Application, Member, Recipe
from experiments.registry.documents.versions import save_version
from tests.experiments.conftest import ready_host
from tests.experiments.finished import whole_run

SYSTEM: dict[str, Any] = {
    "role": "web",
    "server": {"kind": "nginx", "proxy_to": ["${app.address}:${app.port}"]},
    "members": [
        {"role": "database", "server": {"kind": "postgresql", "port": 5432}},
        {
            "role": "app",
            "server": {"kind": "command", "argv": ["app", "${database.address}", "${database.port}"], "port": 9000},
        },
    ],
}
TUNED = {
    "parameters": {"swappiness": {"type": "int", "default": 10}},
    "steps": [
        {"kind": "limits", "nofile": 4096},
        {"kind": "sysctl", "values": {"vm.swappiness": "${swappiness}"}, "on": "database"},
        {"kind": "environment", "variables": {"DATABASE": "${database.address}:${database.port}"}, "on": "app"},
    ],
}
MEMORY_BYTES = 3 << 30


def system_of(admin: Member, stock: Mapping[str, Any]) -> dict[str, Any]:
    """What a run of a proxy, an application and a database on hosts of their own is made of."""
    return {
        **stock,
        "application": save_version(admin, Application, "shop", SYSTEM),
        "recipe": save_version(admin, Recipe, "calm", TUNED),
        "members": {
            "database": ready_host(admin, "db", address="10.0.0.7", data_address="192.168.0.7"),
            "app": ready_host(admin, "app", address="10.0.0.8"),
        },
    }


def run_of_a_system(
    busy: Mapping[str, float | None],
    *,
    load: Mapping[str, Any] | None = None,
    facts: Mapping[str, Mapping[str, str]] | None = None,
) -> list[AnyEvent]:
    """`busy`: role of each further member -> how busy its CPUs were (None = nobody saw it); `sut` is the loaded one.

    `facts`: role -> what its machine is.
    """
    known = facts or {}
    captured = {f"members.{role}.host.{path}": value for role, own in known.items() for path, value in own.items()}
    found: list[AnyEvent] = []
    for event in whole_run(load, configuration=captured or None):
        if isinstance(event, e.Samples) and event.role == "sut":
            found += _samples(event.at_unix_s, busy)
        elif isinstance(event, e.FactsCollected) and event.role == "driver":
            found += [
                e.FactsCollected(
                    role, f"{role}".ljust(64, "0"), known.get(role, {}), f"/{role}", role, 0.0, f"{role} 1"
                )
                for role in busy
                if role != "sut"
            ]
            found.append(event)
        else:
            found.append(event)
    return found


def _samples(at_unix_s: float, busy: Mapping[str, float | None]) -> Iterable[e.Samples]:
    for role, ratio in busy.items():
        if ratio is not None:
            values = {
                "cpu.busy_ratio": ("ratio", ratio),
                "cpu_set.busy_ratio": ("ratio", ratio),
                "process.cpu_ratio": ("ratio", ratio * 4),
                "memory.used_bytes": ("bytes", float(MEMORY_BYTES)),
                "network.eth0.rx_bytes_per_s": ("bytes_per_s", 2e6),
                "network.eth0.tx_bytes_per_s": ("bytes_per_s", 5e6),
                "network.lo.rx_bytes_per_s": ("bytes_per_s", 9e9),
                "network.lo.tx_bytes_per_s": ("bytes_per_s", 9e9),
            }
            yield e.Samples(role, at_unix_s, values)
