"""Result files of load tools: fetched over a real connection, read, kept, and never counted twice."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents import events as e
from agents.base.errors import CommandError, HostError, KeepError
from agents.base.session import Session
from agents.record import Record
from agents.remote.fetching import CHUNK_BYTES, compress, fetch
from agents.remote.ssh import connect
from agents.runner import Runner
from agents.running import collecting
from agents.running.control import Control
from agents.spec import RunSpec
from tests.agents.recorded import CASES
from tests.agents.run_lab import KEY, Lab, Watched, WorkerDiedError, assert_left_as_it_was, lab, lab_hosts

__all__ = ["lab", "lab_hosts"]

RESULTS = (CASES / "jmeter" / "people.csv").read_bytes()

# Answers as JMeter does: its version, else the summary of a recorded run and the recorded results.
JMETER = """#!/bin/sh
case $3 in --version) echo "5.6.3"; echo; echo "Copyright (c) 1999-2024 The Apache Software Foundation"; exit;; esac
if [ "$1" = -g ]; then
  [ ! -e "{folder}/broken" ] || {{ echo "Data exporter is not complete"; exit 1; }}
  mkdir html-report && echo "<html>" >html-report/index.html
  exit
fi
echo "$$" >>"{folder}/starts"
cp "{folder}/recorded.jtl" results.jtl
cat "{cases}/people-summary.txt"
"""


async def nothing(_done: int, _size: int) -> None:
    pass


@pytest.fixture
async def session(lab: Lab) -> AsyncIterator[Session]:
    opened = await connect(lab.driver.login("driver"), lab.driver.private_key)
    yield opened
    await opened.close()


async def test_a_file_comes_over_in_pieces_and_is_proven_by_its_checksum(session: Session, tmp_path: Path) -> None:
    data = bytes(range(256)) * (CHUNK_BYTES // 256) + b"and a little more"
    (tmp_path / "there").write_bytes(data)
    seen: list[tuple[int, int]] = []

    async def note(done: int, size: int) -> None:
        seen.append((done, size))

    got = await fetch(session, str(tmp_path / "there"), tmp_path / "here", max_bytes=1 << 30, on_progress=note)
    assert (tmp_path / "here").read_bytes() == data
    assert (got.size_bytes, got.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert seen == [(CHUNK_BYTES, len(data)), (len(data), len(data))]


@pytest.mark.parametrize("here", [b"0123", b"0123456789", b"other", b"far more than there is", b""])
async def test_what_is_here_already_is_used_or_replaced(session: Session, tmp_path: Path, here: bytes) -> None:
    (tmp_path / "there").write_bytes(b"0123456789")
    (tmp_path / "here").write_bytes(here)
    await fetch(session, str(tmp_path / "there"), tmp_path / "here", max_bytes=100, on_progress=nothing)
    assert (tmp_path / "here").read_bytes() == b"0123456789"


async def test_a_file_over_the_limit_is_not_fetched_and_the_option_is_named(session: Session, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"0" * 1000)
    with pytest.raises(CommandError, match="are allowed") as caught:
        await fetch(session, str(tmp_path / "there"), tmp_path / "here", max_bytes=999, on_progress=nothing)
    assert "max_result_mb" in caught.value.hint
    assert not (tmp_path / "here").exists()


async def test_a_file_that_is_cut_meanwhile_is_a_fault_of_the_host(session: Session, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_bytes(b"0" * (CHUNK_BYTES + 10))

    async def cut(_done: int, _size: int) -> None:
        there.write_bytes(b"")

    with pytest.raises(HostError, match="ended at byte"):
        await fetch(session, str(there), tmp_path / "here", max_bytes=1 << 30, on_progress=cut)


def test_compressing_stops_at_the_limit_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(RESULTS)
    assert compress(tmp_path / "plain", tmp_path / "packed", max_bytes=1 << 20)
    assert gzip.decompress((tmp_path / "packed").read_bytes()) == RESULTS
    assert not compress(tmp_path / "plain", tmp_path / "other", max_bytes=1000)
    assert not (tmp_path / "other").exists()


def test_results_are_compressed_without_secrets_also_across_the_border_of_two_pieces(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"\xff" * ((1 << 20) - 12) + b" password=hunter22 \xfe")
    assert compress(tmp_path / "plain", tmp_path / "packed", max_bytes=1 << 20)
    kept = gzip.decompress((tmp_path / "packed").read_bytes())
    assert kept == b"\xff" * ((1 << 20) - 12) + b" password=(hidden) \xfe"


class Keeping(Watched):
    """A watched run that keeps files as the recorder does, unless it refuses."""

    refuses = False
    max_file_bytes = 16 << 20

    def runner(self, spec: RunSpec, record: Record | None = None) -> Runner:
        self.kept: dict[str, bytes] = getattr(self, "kept", {})

        async def keep(name: str, content: bytes | Path, _media_type: str) -> None:
            if self.refuses:
                raise KeepError("The place of files does not answer.")
            self.kept[name] = content if isinstance(content, bytes) else await asyncio.to_thread(content.read_bytes)

        control = Control(
            self.connect,
            self.emit,
            lambda: self.cancelled,
            self.fence,
            self.patience_s,
            self.deadman_s,
            keep,
            max_file_bytes=self.max_file_bytes,
        )
        return Runner(KEY, spec, record or Record(), control)


def jmeter_spec(lab: Lab, results: bytes = RESULTS, **options: bool) -> RunSpec:
    (lab.folder / "recorded.jtl").write_bytes(results)
    program = lab.folder / "jmeter"
    program.write_text(JMETER.format(folder=lab.folder, cases=CASES / "jmeter"))
    program.chmod(0o755)
    spec = lab.spec(phases=(("warm_up", 1), ("measure", 1)))
    body = spec.model_dump()
    body["workload"]["driver"] = {"kind": "jmeter", "binary": str(program), "users": 8, **options}
    return RunSpec.model_validate(body)


async def test_a_run_with_jmeter_counts_its_results_and_keeps_them_compressed(lab: Lab) -> None:
    watched = Keeping(lab)
    record = await watched.run(jmeter_spec(lab))
    assert record.failed is None, watched.log
    warm_up, measured = record.reports[0], record.reports[1]
    assert (warm_up.report["format"], warm_up.result_file) == ("jmeter-summariser", None)
    assert (measured.report["format"], measured.report["requests"]) == ("jmeter-jtl-csv", 1825)
    assert measured.report["users"] == 8
    name = "1-measure-results.jtl.gz"
    sha256 = hashlib.sha256(RESULTS).hexdigest()
    assert measured.result_file == e.ResultFile("results.jtl", len(RESULTS), sha256, name)
    assert gzip.decompress(watched.kept[name]) == RESULTS
    assert "summary =   1825 in" in watched.log
    assert_left_as_it_was(lab, record)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (False, "html-report.tar.gz is kept as 1-measure-html-report.tar.gz."),
        (True, "There is no html-report.tar.gz: Data exporter is not complete"),
    ],
)
async def test_the_html_report_is_kept_or_it_is_told_why_not(lab: Lab, broken: bool, said: str) -> None:
    if broken:
        (lab.folder / "broken").touch()
    watched = Keeping(lab)
    record = await watched.run(jmeter_spec(lab, html_report=True))
    assert record.failed is None, watched.log
    assert said in watched.log
    assert ("1-measure-html-report.tar.gz" in watched.kept) is not broken
    assert record.reports[1].report["requests"] == 1825
    assert_left_as_it_was(lab, record)


async def test_a_worker_that_dies_while_it_collects_is_followed_by_one_that_begins_anew(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, first = jmeter_spec(lab), Keeping(lab)

    def die(*_: object, **__: object) -> bool:
        raise WorkerDiedError

    with monkeypatch.context() as dying:
        dying.setattr(collecting, "compress", die)
        with pytest.raises(WorkerDiedError):
            await first.run(spec)
    assert 1 not in Record.fold(first.events).reports
    second = Keeping(lab, fence=2, events=first.events)
    record = await second.run(spec, Record.fold(first.events))
    assert record.failed is None, second.log
    assert record.reports[1].report["requests"] == 1825
    assert len(lab.starts) == 2, "each phase was loaded once"
    assert set(second.kept) == {"1-measure-results.jtl.gz", "server.log"}


async def test_results_that_cannot_be_read_fail_the_run_and_say_where(lab: Lab) -> None:
    watched = Keeping(lab)
    record = await watched.run(jmeter_spec(lab, b"hello\n"))
    assert record.failed is not None
    assert "its result file is no report: this is no JMeter result file" in record.failed.message
    assert_left_as_it_was(lab, record)


@pytest.mark.parametrize("refuses", [False, True])
async def test_results_for_which_there_is_no_place_are_counted_but_not_kept(lab: Lab, *, refuses: bool) -> None:
    watched = Keeping(lab)
    watched.refuses, watched.max_file_bytes = refuses, 16 << 20 if refuses else 1000
    record = await watched.run(jmeter_spec(lab))
    measured = record.reports[1]
    assert measured.report["requests"] == 1825
    assert measured.result_file is not None
    assert measured.result_file.kept == ""
    assert "not kept" in watched.log
