from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agents.base.errors import ParseError
from agents.remote.ssh import SshSession
from agents.running.disk_room import Need, Room, parse_room, room_command, shortage

MB = 1 << 20
BENCH = Room("/home/bench/.benchhub", "/home", 12 * MB, 5_000)
LOGS = Room("/home/bench/logs", "/home", 12 * MB, 5_000)
TEMPORARY = Room("/tmp", "/", 900 * MB, None)


async def test_the_room_of_a_host_is_read_in_one_round_trip_also_for_what_is_still_to_be_made(
    session: SshSession, tmp_path: Path
) -> None:
    places = [str(tmp_path), f"{tmp_path}/not/yet/there", "/no such place at all", "/proc"]
    found = parse_room((await session.run(room_command(places))).check("df").stdout, places)
    assert [room.directory for room in found] == places
    assert found[0].mount == found[1].mount
    disk = os.statvfs(tmp_path)
    assert found[0].free_bytes == pytest.approx(disk.f_bavail * disk.f_frsize, rel=0.2)
    assert found[2].mount == "/"
    assert (found[3].mount, found[3].free_bytes, found[3].free_inodes) == ("/proc", 0, None)


def test_it_runs_under_sh_without_stat() -> None:
    argv = room_command(["/"]).argv
    only = subprocess.run(
        ["sh", "-c", f"stat() {{ return 1; }}\n{argv[2]}", "sh", "/"], capture_output=True, check=True
    )
    assert parse_room(only.stdout, ["/"])[0].free_inodes is None


@pytest.mark.parametrize(
    ("line", "inodes", "mount", "free_bytes", "free_inodes"),
    [
        ("/dev/vda1 263174212 24117248 71303168 26% /", "16777216 15728640", "/", 71303168 << 10, 15728640),
        ("//nas/a share 1 2 3 10 1 1 0 100% /mnt/with space 5%", "10 0", "/mnt/with space 5%", 0, 0),
        ("/dev/sda1 100 105 -5 105% /full", "0 0", "/full", 0, None),
        ("proc 0 0 0 - /proc", "0 0", "/proc", 0, None),
        ("tmpfs 1024 0 1024 0% /run", "- -", "/run", MB, None),
    ],
)
def test_every_shape_of_df_is_read(
    line: str, inodes: str, mount: str, free_bytes: int, free_inodes: int | None
) -> None:
    found = parse_room(f"{line}\n{inodes}\n".encode(), ["/x"])
    assert found == (Room("/x", mount, free_bytes, free_inodes),)


@pytest.mark.parametrize(
    "output", [b"", b"no\n1 2\n", b"/dev/a 1 1 1 1% /\nno\n", b"/dev/a 1 1 1 1% /\n1 2\n3\n", b"\xff\n\0\n"]
)
def test_what_is_no_answer_of_df_is_a_parse_error(output: bytes) -> None:
    with pytest.raises(ParseError):
        parse_room(output, ["/x"])


@pytest.mark.parametrize("directory", ["", "relative", "-rf"])
def test_only_absolute_directories_are_asked_for(directory: str) -> None:
    with pytest.raises(ValueError, match="not an absolute path"):
        room_command([directory])


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        ([], None),
        ([Need(BENCH.directory, 12 * MB, 5_000), Need(TEMPORARY.directory, 900 * MB, 10**9)], None),
        (
            [Need(BENCH.directory, 64 * MB)],
            (
                "sut has 12 MB free under /home/bench/.benchhub (disk /home), a run needs 64 MB: free some space; "
                "nothing was changed."
            ),
        ),
        (
            [Need(BENCH.directory, 8 * MB), Need(LOGS.directory, 5 * MB)],
            (
                "sut has 12 MB free under /home/bench/.benchhub and /home/bench/logs (disk /home), a run needs 13 MB: "
                "free some space; nothing was changed."
            ),
        ),
        (
            [Need(BENCH.directory, MB, 5_001)],
            (
                "sut has room for 5000 more files under /home/bench/.benchhub (disk /home), a run needs room for 5001: "
                "remove some files; nothing was changed."
            ),
        ),
    ],
)
def test_a_shortage_is_told_in_plain_words(needed: list[Need], words: str | None) -> None:
    assert shortage("sut", [BENCH, LOGS, TEMPORARY], needed) == words


def test_a_need_that_nobody_looked_at_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        shortage("sut", [], [Need("/x", 1)])
