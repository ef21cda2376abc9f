"""A queued run on one real SSH host that is both SUT and driver, of a server that cannot start."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from agents.remote.address import fingerprint
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Application, Host, Member, Recipe, Run, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.hosts.inventory import add_host, approve_key
from tests.agents.run_lab import free_port
from tests.sshd import SshdHost


def launch_broken(admin: Member, at: SshdHost, steps: Sequence[dict[str, Any]] = ()) -> Run:
    host = add_host(
        admin, name="both", address=at.address, port=at.port, user=at.user, private_key=at.private_key, roles="both"
    )
    Host.objects.filter(pk=host.pk).update(offered_host_key=at.host_key)
    approve_key(admin, host, fingerprint(at.host_key))
    wrk = at.home / "wrk"
    wrk.write_text("#!/bin/sh\nexec wrk -v\n")
    wrk.chmod(0o755)
    server = {
        "kind": "command",
        "argv": [sys.executable, "-c", "raise SystemExit(3)"],
        "port": free_port(),
        "cpus": "0",
    }
    workload: dict[str, Any] = {
        "driver": {"kind": "wrk", "connections": 1, "threads": 1, "binary": str(wrk)},
        "phases": [{"name": "m", "kind": "measure", "duration_s": 1}],
        "cpus": "1",
    }
    return launch_run(
        admin,
        Choice(
            save_version(admin, Application, "broken", {"server": server}),
            save_version(admin, Recipe, "steps", {"steps": list(steps)}),
            save_version(admin, Workload, "load", workload),
            host,
            [host],
        ),
    )
