from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.base.command import script
from agents.base.errors import ParseError, PlanError
from agents.base.session import Session
from agents.running.needs import INSTALL, NEEDS, insist_on_needs, look, parse_look

GUIDE = Path(__file__).parents[3] / "docs/reliability.md"
NUMBER = {need.name: number for number, need in enumerate(NEEDS)}


def said(*names: str, system: str = "ID=debian", home: str = "/home/bench") -> bytes:
    return "\n".join([f"os {system}", f"home {home}", *(f"no {NUMBER[name]}" for name in names)]).encode()


async def test_this_machine_has_what_a_run_needs_and_keeps_no_trace_of_the_look(session: Session) -> None:
    found = await look(session, "driver", "bench")
    assert (found.complaint("sut"), found.lacks) == (None, ())
    left = await session.run(script("ls -A; cd; ls -A"))
    assert ".benchhub-look" not in left.text
    await insist_on_needs(session, "all", "bench")


@pytest.mark.parametrize(
    ("system", "line"),
    [
        ("ID=ubuntu", "apt-get install util-linux curl"),
        ('ID="rocky"', "dnf install util-linux curl"),
        ("ID=alpine", "apk add util-linux curl"),
        ("ID=plan9", "apt-get install util-linux curl, or dnf install util-linux curl, or apk add util-linux curl"),
    ],
)
def test_what_is_missing_is_named_with_the_command_that_installs_it(system: str, line: str) -> None:
    found, _ = parse_look(said("flock", "curl or wget", system=system), "bench")
    complaint = found.complaint("sut-1")
    assert complaint is not None
    assert complaint[0].startswith("sut-1 lacks what a run needs: flock (BenchHub lets one change be made at a time")
    assert complaint[1] == f"Install it there as root: {line}"


def test_what_a_run_can_do_without_is_only_remarked() -> None:
    found, home = parse_look(said("lscpu"), "bench")
    assert (found.complaint("sut-1"), home) == (None, "/home/bench")
    assert "lscpu (BenchHub knows the processors with it)" in found.remark()


@pytest.mark.parametrize(
    ("output", "wrong"),
    [
        (b"no /proc", "shows no /proc"),
        (b"no home /home/bench", "has no directory /home/bench for bench"),
        (b"home /home/bench\nno write", "does not let bench write to its home directory /home/bench"),
    ],
)
def test_places_that_are_missing_are_named(output: bytes, wrong: str) -> None:
    complaint = parse_look(output, "bench")[0].complaint("sut-1")
    assert complaint is not None
    assert wrong in complaint[0]
    assert complaint[1]


def test_an_answer_that_makes_no_sense_is_an_error() -> None:
    with pytest.raises(ParseError):
        parse_look(b"", "bench")


async def test_a_run_does_not_begin_where_something_is_missing(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tuple(replace(need, probe="no-such-program") if need.name == "flock" else need for need in NEEDS)
    monkeypatch.setattr("agents.running.needs.NEEDS", gone)
    with pytest.raises(PlanError, match="lacks what a run needs: flock"):
        await insist_on_needs(session, "all", "bench")


def test_the_guide_has_every_need_with_its_packages() -> None:
    rows = {
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in GUIDE.read_text().splitlines()
        if line.startswith("| ")
    }
    for need in NEEDS:
        when = " (optional)" if need.optional else " on driver hosts" if need.part == "driver" else ""
        assert (f"`{need.name}`{when}", need.purpose, *(need.package(family) for family in INSTALL)) in rows
