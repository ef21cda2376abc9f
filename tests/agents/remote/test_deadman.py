"""The dead-man timer, on real hosts: it goes off when no worker comes any more, and never otherwise."""

from __future__ import annotations

import contextlib
from pathlib import Path

from agents import events as e
from agents.record import Record
from tests.agents.run_lab import XML_STEP, Lab, Watched, assert_left_as_it_was, die_when, file_step, needs_wrk
from tests.sshd import eventually, exists

pytestmark = needs_wrk

DEADMAN_S = 10
"""A worker renews it five times as often; on a busy machine each of its commands may take a second or two."""


def timers(lab: Lab) -> list[int]:
    """Processes of dead-man timers on the hosts of this lab."""
    found = []
    roots = {str(lab.directory(host)).encode() for host in (lab.sut, lab.driver)}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            arguments = path.read_bytes().split(b"\0")
            if any(b"no worker has been here" in argument for argument in arguments) and roots & set(arguments):
                found.append(int(path.parent.name))
    return found


async def test_a_host_that_no_worker_asks_after_puts_itself_back(lab: Lab) -> None:
    spec = lab.spec(file_step(lab), XML_STEP, phases=(("measure", 60),))
    events = await die_when(lab, spec, e.LoadStarted, deadman_s=DEADMAN_S)
    assert (lab.etc / "app.conf").read_text() == "tuned\n"
    load = next(event for event in events if isinstance(event, e.JobStarted) and event.name == "load-0")
    fired = [lab.directory(host) / "fired" for host in (lab.sut, lab.driver)]
    await eventually(lambda: all(file.exists() for file in fired))
    assert [file.read_text() for file in fired] == ["0\n", "0\n"]
    assert (lab.etc / "app.conf").read_text() == "as it was\n"
    assert not exists(load.pid or 0)

    later = Watched(lab, fence=2, events=list(events))
    record = await later.run(spec, Record.fold(events))
    assert record.failed is not None
    assert "put itself back" in record.failed.message
    assert record.failed.cause == "host"
    assert_left_as_it_was(lab, record)
    assert timers(lab) == []


async def test_a_worker_that_is_there_keeps_the_timer_quiet_and_leaves_none(lab: Lab) -> None:
    watched, seen = Watched(lab, deadman_s=DEADMAN_S), []
    watched.on_event = lambda event: seen.extend(timers(lab)) if isinstance(event, e.LoadStarted) else None
    record = await watched.run(lab.spec(file_step(lab), phases=(("measure", DEADMAN_S + 4),)))
    assert record.failed is None
    assert len(seen) >= 2
    assert_left_as_it_was(lab, record)
    assert timers(lab) == []


async def test_a_timer_leaves_the_host_to_a_newer_holder(lab: Lab) -> None:
    spec = lab.spec(file_step(lab))
    await die_when(lab, spec, e.LoadStarted, deadman_s=DEADMAN_S)
    fence = lab.sut.home / ".benchhub/fence/fence"
    fence.write_text("7\n")
    await eventually(lambda: timers(lab) == [])
    assert (lab.etc / "app.conf").read_text() == "tuned\n"
    assert not (lab.directory(lab.sut) / "fired").exists()


async def test_no_timer_overwrites_what_a_worker_has_left_to_a_person(lab: Lab) -> None:
    watched = Watched(lab)

    def edit(event: e.AnyEvent) -> None:
        if isinstance(event, e.LoadStarted):
            (lab.etc / "app.conf").write_text("somebody's own\n")

    watched.on_event = edit
    record = await watched.run(lab.spec(file_step(lab)))
    assert record.restored is not None
    assert "someone else changed" in record.restored.differences["sut"][0]
    assert timers(lab) == []
    assert (lab.directory(lab.sut) / "journal/restore.sh").exists()


async def test_a_timer_stays_quiet_while_a_worker_takes_long_on_the_way_back(lab: Lab) -> None:
    undone = lab.folder / "undone"
    step = file_step(lab) | {
        "undo": f'echo undo >>"$4"; sleep {DEADMAN_S + 4}; printf %s "$3" >"$1"',
        "arguments": [str(lab.etc / "app.conf"), "tuned\n", "as it was\n", str(undone)],
    }
    record = await Watched(lab, deadman_s=DEADMAN_S).run(lab.spec(step))
    assert undone.read_text().split() == ["undo"]
    assert_left_as_it_was(lab, record)
