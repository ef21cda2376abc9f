"""Which command of BenchHub does what on a simulated host. The scripts themselves are BenchHub's own texts."""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Callable, Mapping

from agents.base.command import Command
from agents.drivers.wrk.wrk import Wrk
from agents.events import StepIntended
from agents.remote import deadman, fencing, journal, survey
from agents.remote.claiming import Claimant
from agents.remote.fencing import Hold
from agents.remote.job_commands import kill_command, poll_command, start_command
from agents.remote.transfer import get_command, put_command
from agents.running import common_start, disk_room, needs, own_address, preparation, readiness, snapshot
from agents.servers.base.files import instance_with
from agents.servers.command import CommandServer
from bench.fleet import replies
from bench.fleet.simulated import Answer, SimulatedHost, uptime_s

Does = Callable[[SimulatedHost, list[str], bytes], Answer]
PROGRAM = "/opt/fleet/server"
_URL = re.compile(r"//([0-9.]+):")


def script_of(command: Command) -> str:
    return command.argv[2]


def _put(host: SimulatedHost, args: list[str], stdin: bytes) -> Answer:
    host.files[args[0]] = stdin
    return Answer()


def _get(host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    found = host.read(args[0])
    if found is None:
        return Answer(b"", 1, f"there is no file {args[0]}\n".encode())
    return Answer(found[int(args[1]) - 1 :][: int(args[2])])


def _journal(host: SimulatedHost, args: list[str], stdin: bytes) -> Answer:
    line, _, restore = stdin.partition(b"\n")
    host.files[f"{args[0]}/{args[1]}.json"], host.files[f"{args[0]}/restore.sh"] = line, restore
    return Answer()


def _instance(host: SimulatedHost, args: list[str], stdin: bytes) -> Answer:
    if host.has_directory(args[0]):
        return Answer(b"", 1, b"File exists\n")
    host.files[f"{args[0]}/files.tar"] = stdin
    return Answer()


def _give_up_share(host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    host.files.pop(f"{args[0]}/claim-{args[1]}", None)
    return Answer()


def _disarm(host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    host.files.pop(f"{args[0]}/deadline", None)
    return Answer()


def _forget(host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    host.remove(args[1])
    host.files.pop(f"{args[0]}/claim-{args[2]}", None)
    if not any(name.startswith(f"{args[0]}/claim-") for name in host.files):
        host.remove(args[0])
    return Answer()


def _shared_with(host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    prefix = f"{args[0]}/claim-"
    roles = [name[len(prefix) :] for name in host.files if name.startswith(prefix) and name != prefix + args[1]]
    return Answer("".join(f"{role}\n" for role in roles).encode())


def _probe(host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    """Whether the server of that address runs: the network of the fleet answers for it."""
    found = _URL.search(args[0])
    there = host.network.get(found[1]) if found else None
    return Answer(b"hello\n\n200\n200" if there is not None and there.serves() else b"\n000\n000")


def _effective(_host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    frames = replies.reply(script_of(CommandServer(argv=(PROGRAM,)).effective_command("", 1)), "/", str(os.getpid()))[1]
    files = "".join(f"file.{at} {base64.b64encode(b'hello').decode()}\n" for at in range(len(args) - 2))
    return Answer(files.encode() + frames)


def _remove(host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    host.remove(args[0])
    return Answer()


def _size(host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
    found = host.read(args[0])
    return Answer(b"", 1) if found is None else Answer(f"{len(found)}\n".encode())


def _replied(script: str) -> Does:
    def does(_host: SimulatedHost, args: list[str], _stdin: bytes) -> Answer:
        status, output = replies.reply(script, *args)
        return Answer(output, status)

    return does


_HOLD = Hold(1, "/fence")
_STEP = StepIntended(0, "", {}, ())
_VERSION = script_of(CommandServer(argv=(PROGRAM,)).version_command())

SCRIPTS: Mapping[str, Does] = {
    script_of(start_command("/a/b", "", cookie="c" * 16, max_output_bytes=1)): lambda host, args, stdin: host.start_job(
        args[0], args[1], stdin.decode("utf-8", "surrogateescape")
    ),
    script_of(poll_command("/a/b")): lambda host, args, _: host.poll(args[0], int(args[1]), int(args[3])),
    script_of(kill_command("/a/b", 1)): lambda host, args, _: host.kill_job(args[0]),
    script_of(put_command("/a", b"")): _put,
    script_of(get_command("/a", offset=0, max_bytes=1)): _get,
    script_of(Claimant("", "", 1).command(_HOLD)): lambda host, args, _: host.take(
        args[0], args[1], int(args[2]), args[3], args[4]
    ),
    script_of(survey.command()): lambda host, _args, _stdin: host.survey(),
    script_of(journal.write_command("/a", {0: _STEP}, 0)): _journal,
    script_of(instance_with("/a", {})): _instance,
    deadman._RENEW: lambda host, args, _: host.renew(args[0], int(args[1])),
    deadman._DISARM: _disarm,
    deadman._LEAVE: _remove,
    deadman._SHARED_WITH: _shared_with,
    deadman._GIVE_UP_SHARE: _give_up_share,
    script_of(readiness.probe_command("", 200)): _probe,
    script_of(readiness.listening_command(1)): lambda host, _args, _stdin: Answer(b"", 0 if host.serves() else 1),
    script_of(own_address.addresses_command("")): lambda host, _args, _stdin: Answer(f"own {host.address}\n".encode()),
    script_of(CommandServer(argv=(PROGRAM,)).effective_command("", 1)): _effective,
    script_of(snapshot.command()): _replied(script_of(snapshot.command())),
    script_of(disk_room.room_command(["/"])): _replied(script_of(disk_room.room_command(["/"]))),
    **{
        script_of(needs.look_command(part)): _replied(script_of(needs.look_command(part))) for part in ("all", "driver")
    },
    script_of(Wrk(connections=1, threads=1).version_command()): lambda *_: Answer(
        b"wrk 4.2.0 [epoll] Copyright (C) 2012 Will Glozer\n"
    ),
    _VERSION: lambda _host, args, _stdin: Answer(f"{args[-1]}\n".encode()),
    preparation._FORGET: _forget,
    preparation._CLOCK: lambda *_: Answer(f"{time.time():.9f}\n".encode()),
    common_start._UPTIME: lambda *_: Answer(f"{uptime_s():.2f}\n".encode()),
    'wc -c <"$1"': _size,
}

PROGRAMS: Mapping[tuple[str, ...], Does] = {
    ("rm", "-rf", "--"): _remove,
    ("test", "-d"): lambda host, args, _: Answer(b"", 0 if host.has_directory(args[0]) else 1),
    ("stat", "-c", "%s", "--"): _size,
    ("cat", "/proc/sys/kernel/random/boot_id"): lambda host, _args, _stdin: Answer(f"{host.boot_id}\n".encode()),
    ("getconf", "CLK_TCK"): lambda *_: Answer(b"100\n"),
    ("true",): lambda *_: Answer(),
    ("mkdir", "-p", "--"): lambda *_: Answer(),
}
FENCE = script_of(fencing.fenced(Command(("true",)), _HOLD))


def perform(host: SimulatedHost, argv: tuple[str, ...], stdin: bytes) -> Answer | None:
    """What the command came to; None for one that is not known."""
    if argv[:2] == ("sh", "-c"):
        text, args = argv[2], list(argv[4:])
        if text == FENCE:
            inner = argv[14:]
            done: Answer | None = Answer()

            def change() -> Answer:
                nonlocal done
                done = perform(host, inner, stdin)
                return done or Answer()

            answer = host.fenced(args[:10], change)
            return None if done is None else answer
        if (does := SCRIPTS.get(text)) is not None:
            return does(host, args, stdin)
        if text.startswith("echo '==fact-"):
            clock_s, boot_id, machine_id = time.time(), host.boot_id, host.machine_id
            return Answer(replies.facts(text, clock_s=clock_s, boot_id=boot_id, machine_id=machine_id))
        return None
    for words, does in PROGRAMS.items():
        if argv[: len(words)] == words:
            return does(host, list(argv[len(words) :]), stdin)
    return None
