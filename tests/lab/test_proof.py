"""The proofs that an operator runs on a host of their own, run on a host of the lab, its restart included."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agents.base.session import Session
from agents.remote.ssh import connect
from agents.running.proof import HostProof, Proof
from lab.lab import Lab, LabHost
from tests.lab.conftest import login
from tests.sshd import eventually

# A host of the lab has no init system to ask: the wish is written down, and the lab does it.
REBOOT = "#!/bin/sh\ntouch /root/restart-wanted\n"


def proof_of(host: LabHost, fence: int) -> HostProof:
    async def log_in() -> Session:
        return await connect(login(host), host.private_key)

    return HostProof(host.name, log_in, fence)


async def test_a_good_host_proves_everything_and_keeps_no_trace(lab: Lab) -> None:
    host, seen = lab.host("sut"), list[Proof]()
    host.exec("sh", "-c", "cat >/usr/local/sbin/reboot; chmod 755 /usr/local/sbin/reboot", stdin=REBOOT.encode())
    wanted = Path(host.home) / "restart-wanted"

    async def restart() -> None:
        await eventually(wanted.exists)
        await asyncio.to_thread(lab.reboot, "sut")

    restarting = asyncio.create_task(restart())
    assert await proof_of(host, 1).prove(seen.append, restart=True), seen
    await restarting
    assert [proof.passed for proof in seen] == [True] * 5
    assert list((Path(host.home) / ".benchhub/runs").iterdir()) == []
    assert host.processes() == ()


async def test_a_host_that_does_not_keep_a_value_is_found_out(lab: Lab) -> None:
    host, seen = lab.host("sut"), list[Proof]()
    # Another value each time: however late the meddler comes on a busy machine, one reading differs from another.
    meddler = "n=60; while :; do n=$((n + 1)); echo $n >/proc/sys/net/ipv4/tcp_fin_timeout; sleep 0.02; done"
    host.exec("sh", "-c", f"({meddler}) </dev/null >/dev/null 2>&1 & echo $! >/root/meddler")
    try:
        assert not await proof_of(host, 2).prove(seen.append, restart=False)
    finally:
        host.exec("sh", "-c", "kill -9 $(cat /root/meddler); rm -f /root/meddler /root/restart-wanted")
    failed = [proof for proof in seen if proof.passed is False]
    assert any("tcp_fin_timeout" in proof.detail for proof in failed), seen
    assert seen[-1].passed is None
