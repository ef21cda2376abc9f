"""Measures BenchHub's SSH work on 1, 10 and 50 hosts against a bare asyncssh script and against ansible-core.

The work per host: log in, read the facts, 10 commands one after the other, write a file, and check that a web server
answers. All three do the same commands, in the same run, taking turns. Ansible comes into a virtual environment of its
own below the work directory. With `--only-facts` the work is logging in and reading the facts, on 100 hosts, without
Ansible, and the exit status is 1 when BenchHub takes more than 1.5 times as long. Prints Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import asyncssh

from agents.base.command import Command
from agents.facts import FACTS, collect, facts_command, parse_facts
from agents.remote.address import Address
from agents.remote.ssh import connect
from agents.remote.transfer import put_command
from agents.running.readiness import probe_command
from bench.sshd import Hosts, running_hosts
from bench.web import web_server
from experiments.analysis.verdict import judge

ANSIBLE = "ansible-core==2.19.14"
# All hosts share this machine: with 50 of them a command waits long for its turn on a CPU.
COMMANDS = tuple(Command(("sh", "-c", f"cat /proc/loadavg; echo {at}"), timeout_s=300) for at in range(10))
FILE = b"maxThreads=63\n" * 100
AIM_RATIO = 1.5
AT_ONCE = 25
"""Hosts of which both tools collect facts at a time, when it is only facts."""

BARE_MARK = "==fact-0"

Work = Callable[[Hosts, Path, str], None]
Run = Callable[[Command], Awaitable[bytes]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", help="1, 10 and 50, or 100 with --only-facts")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--work-dir", type=Path, default=Path(tempfile.gettempdir()) / "benchhub-bench")
    parser.add_argument("--no-ansible", action="store_true")
    parser.add_argument("--only-facts", action="store_true")
    given = parser.parse_args()
    work: dict[str, Work] = {"BenchHub": _benchhub, "bare asyncssh": _bare}
    if given.only_facts:
        work = {"BenchHub": _benchhub_facts, "bare asyncssh": _bare_facts}
    elif not given.no_ansible:
        work["ansible-core, pipelining"] = functools.partial(_ansible, _ansible_environment(given.work_dir))
    counts = given.hosts or ((100,) if given.only_facts else (1, 10, 50))
    found = {count: _measure(count, work, given.rounds) for count in counts}
    print("\n".join(table(found)))
    if given.only_facts and any(_ratio(times) > AIM_RATIO for times in found.values()):
        raise SystemExit(1)


def _ratio(times: Mapping[str, Sequence[float]]) -> float:
    return statistics.median(a / b for a, b in zip(times["BenchHub"], times["bare asyncssh"], strict=True))


def _interval(times: Mapping[str, Sequence[float]]) -> str:
    """The 95 % interval of the ratio, by the rule of the verdicts; nothing from too few rounds."""
    verdict = judge(times["bare asyncssh"], times["BenchHub"], higher_is_better=False, design="blocked")
    if verdict.ci95_pct is None:
        return ""
    low, high = verdict.ci95_pct
    return f" ({1 + low / 100:.2f} to {1 + high / 100:.2f})"


def table(found: Mapping[int, Mapping[str, Sequence[float]]]) -> list[str]:
    """The Markdown: medians in seconds, the range in brackets, and each tool's time as a multiple of bare asyncssh."""
    names = list(next(iter(found.values())))
    lines = [f"| hosts | {' | '.join(f'{name}, s' for name in names)} | BenchHub : bare asyncssh |"]
    lines.append("| ---: |" + " ---: |" * (len(names) + 1))
    for hosts, times in found.items():
        cells = [f"{statistics.median(t):.2f} ({min(t):.2f} to {max(t):.2f})" for t in times.values()]
        lines.append(f"| {hosts} | {' | '.join(cells)} | {_ratio(times):.2f}{_interval(times)} |")
    aim = f"Aim: at most {AIM_RATIO} times bare asyncssh (median of the ratios of neighbours; its 95 % interval)."
    return [*lines, "", aim]


def _measure(count: int, work: Mapping[str, Work], rounds: int) -> dict[str, list[float]]:
    """Seconds of each tool, round by round; every round begins with another tool, so that drift hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in work}
    names = list(work)
    with (
        tempfile.TemporaryDirectory(prefix="benchhub-ssh-") as place,
        web_server(Path(place)) as url,
        running_hosts(Path(place), count) as hosts,
    ):
        for turn in range(rounds + 1):  # the first is a warm-up
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                started_s = time.perf_counter()
                work[name](hosts, Path(place), url)
                took_s = time.perf_counter() - started_s
                print(f"{count} hosts, round {turn}: {name} {took_s:.2f} s", file=sys.stderr)
                if turn:
                    times[name].append(took_s)
    return times


def _benchhub(hosts: Hosts, folder: Path, url: str) -> None:
    async def one(host: Address) -> None:
        session = await connect(host, hosts.private_key)
        try:
            facts = await collect(session)
            if facts.cpu is None:
                raise SystemExit("no facts")
            for command in COMMANDS:
                (await session.run(command)).check("a command")
            await session.put(str(folder / f"{host.name}.benchhub"), FILE)
            (await session.run(probe_command(url, 200))).check("the readiness check")
        finally:
            await session.close()

    async def everything() -> None:
        await asyncio.gather(*(one(host) for host in hosts.addresses))

    asyncio.run(everything())


def _bare(hosts: Hosts, folder: Path, url: str) -> None:
    async def one(host: Address, run: Run) -> None:
        parse_facts(FACTS, BARE_MARK, await run(facts_command(FACTS, BARE_MARK)))
        for command in COMMANDS:
            await run(command)
        await run(put_command(str(folder / f"{host.name}.bare"), FILE))
        await run(probe_command(url, 200))

    asyncio.run(_bare_on_all(hosts, one, at_once=len(hosts.addresses)))


def _benchhub_facts(hosts: Hosts, folder: Path, url: str) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(host: Address) -> None:
        async with turns:
            session = await connect(host, hosts.private_key)
            try:
                if (await collect(session)).cpu is None:
                    raise SystemExit("no facts")
            finally:
                await session.close()

    async def everything() -> None:
        await asyncio.gather(*(one(host) for host in hosts.addresses))

    asyncio.run(everything())


def _bare_facts(hosts: Hosts, folder: Path, url: str) -> None:
    async def one(host: Address, run: Run) -> None:
        parse_facts(FACTS, BARE_MARK, await run(facts_command(FACTS, BARE_MARK)))

    asyncio.run(_bare_on_all(hosts, one, at_once=AT_ONCE))


async def _bare_on_all(hosts: Hosts, work: Callable[[Address, Run], Awaitable[None]], *, at_once: int) -> None:
    """`work` on every host over a plain asyncssh connection of its own, at most `at_once` at a time."""
    key = asyncssh.import_private_key(hosts.private_key)
    known_hosts = str(hosts.folder / "known_hosts")
    turns = asyncio.Semaphore(at_once)

    async def one(host: Address) -> None:
        async with (
            turns,
            asyncssh.connect(
                host.address, host.port, username=host.user, client_keys=[key], known_hosts=known_hosts, config=None
            ) as connection,
        ):

            async def run(command: Command) -> bytes:
                text, data = shlex.join(command.argv), command.stdin or None
                result = await connection.run(text, input=data, check=True, encoding=None)
                return bytes(result.stdout or b"")  # type: ignore[arg-type]

            await work(host, run)

    await asyncio.gather(*(one(host) for host in hosts.addresses))


def _ansible(environment: Path, hosts: Hosts, folder: Path, url: str) -> None:
    commands = [{"command": {"argv": list(command.argv)}} for command in COMMANDS]
    template = {"template": {"src": str(folder / "file.j2"), "dest": str(folder / "{{ inventory_hostname }}.ansible")}}
    ready = {"uri": {"url": url, "status_code": 200}, "retries": 10, "delay": 1}
    (folder / "file.j2").write_bytes(FILE)
    play = {"hosts": "all", "gather_facts": True, "tasks": [*commands, template, ready]}
    (folder / "play.json").write_text(json.dumps([play]))
    lines = [
        f"{host.name} ansible_host={host.address} ansible_port={host.port} ansible_user={host.user} "
        f"ansible_python_interpreter={sys.executable}"
        for host in hosts.addresses
    ]
    (folder / "inventory").write_text("\n".join(["[all]", *lines]))
    options = f"-o UserKnownHostsFile={hosts.folder}/known_hosts -o ControlMaster=auto -o ControlPersist=2s"
    control = tempfile.mkdtemp(prefix="c", dir=folder)  # new for each round, as a new play of another day has it
    subprocess.run(
        [environment / "bin" / "ansible-playbook", "-i", folder / "inventory", folder / "play.json"],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=600,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_PIPELINING": "True",
            "ANSIBLE_FORKS": str(len(hosts.addresses)),
            "ANSIBLE_PRIVATE_KEY_FILE": str(hosts.folder / "login_key"),
            "ANSIBLE_SSH_ARGS": options,
            "ANSIBLE_SSH_CONTROL_PATH_DIR": control,
        },
    )


def _ansible_environment(work_dir: Path) -> Path:
    environment = work_dir / "ansible"
    if not (environment / "bin" / "ansible-playbook").exists():
        venv.create(environment, with_pip=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", ANSIBLE], check=True)
    return environment


if __name__ == "__main__":
    main()
