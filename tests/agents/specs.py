"""RunSpecs for tests: a small real server on the SUT, wrk on the driver host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.spec import HostAddress, RunSpec

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC1xFkK3JrBEAWJ8qfusMvXIUw+xkDzE2wIlhxeSGkiB"


def address(name: str, **more: Any) -> HostAddress:
    return HostAddress(name=name, **{"address": "127.0.0.1", "user": "bench", "host_key": HOST_KEY, **more})


def make_spec(
    *,
    steps: tuple[dict[str, Any], ...] = (),
    server: dict[str, Any] | None = None,
    workload: dict[str, Any] | None = None,
    sut: HostAddress | None = None,
    drivers: tuple[HostAddress, ...] = (),
    members: Mapping[str, tuple[dict[str, Any], HostAddress, tuple[dict[str, Any], ...]]] | None = None,
) -> RunSpec:
    """A whole RunSpec; what is given replaces the defaults field by field. A server without a kind is a command.

    `members`: role -> its server, its host and its steps.
    """
    system = members or {}
    plain = {} if server and "kind" in server else {"kind": "command", "argv": ["true"]}
    return RunSpec.model_validate(
        {
            "application": {
                "name": "app",
                "version": 1,
                "server": {**plain, **(server or {})},
                "members": [{"role": role, "server": one} for role, (one, _, _) in system.items()],
            },
            "recipe": {"name": "recipe", "version": 1, "steps": steps},
            "workload": {
                "name": "load",
                "version": 1,
                "driver": {"kind": "wrk", "connections": 2, "threads": 1},
                "phases": [
                    {"name": "warm-up", "kind": "warm_up", "duration_s": 1},
                    {"name": "load", "kind": "measure", "duration_s": 1},
                ],
                **(workload or {}),
            },
            "sut": (sut or address("sut")).model_dump(),
            "members": [
                {"role": role, "host": host.model_dump(), "steps": own} for role, (_, host, own) in system.items()
            ],
            "drivers": [one.model_dump() for one in drivers or (address("driver"),)],
        }
    )
