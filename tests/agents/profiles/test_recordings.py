"""Recordings of the JVM in pieces: made-up chunks, and a real recording that is converted whole and chunk by chunk."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agents.base.errors import ParseError
from agents.profilers.jfr import CONVERTER
from agents.profiles import recordings
from agents.profiles.reading import read_profile
from agents.profiles.recordings import HEADER_BYTES, MAGIC, pieces_of
from agents.running.profile_parts import read_parts
from agents.running.profiler_files import converted
from tests import needs
from tests.agents.profiles.samples import exact
from tests.agents.run_lab import LIBRARIES

PROGRAM = """
public class Busy {
  static long burn(long n) { long s = n; for (long i = 0; i < n; i++) s = s * 31 + i % 7; return s; }
  public static void main(String[] given) { for (int i = 0; i < 200; i++) if (burn(3_000_000) == 1) return; }
}
"""
SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<configuration version="2.0">
  <event name="jdk.ExecutionSample"><setting name="enabled">true</setting><setting name="period">10 ms</setting></event>
</configuration>
"""


def chunk(size: int, filled: bytes = b"x") -> bytes:
    head = MAGIC + b"\0\2\0\1" + size.to_bytes(8, "big")
    return head.ljust(HEADER_BYTES, b"\0") + filled * (size - HEADER_BYTES)


def pieces(path: Path) -> list[bytes]:
    return [piece.read_bytes() for piece in pieces_of(path, path.with_suffix(".piece"))]


def test_a_recording_is_taken_apart_between_its_chunks_and_a_large_chunk_is_a_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "PIECE_BYTES", 300)
    whole, path = [chunk(100, b"a"), chunk(150, b"b"), chunk(500, b"c"), chunk(200, b"d")], tmp_path / "one.jfr"
    path.write_bytes(b"".join(whole))
    assert pieces(path) == [whole[0] + whole[1], whole[2], whole[3]]
    path.write_bytes(whole[0])
    assert list(pieces_of(path, tmp_path / "piece")) == [path]


@pytest.mark.parametrize(
    "damaged, words",
    [
        (chunk(400)[:350], "ends in the middle of a chunk"),
        (chunk(200) + chunk(200)[:10], "one of its chunks has no size"),
        (chunk(200) + b"n" * 200, "one of its chunks has no size"),
        (chunk(200) + chunk(0), "one of its chunks has no size"),
    ],
)
def test_a_recording_that_is_not_whole_is_refused(
    damaged: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "PIECE_BYTES", 60)
    path = tmp_path / "one.jfr"
    path.write_bytes(damaged)
    with pytest.raises(ParseError, match=words):
        pieces(path)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Of a real JVM, in two chunks."""
    needs.require_program("java")
    needs.require(LIBRARIES.is_dir(), "the jars of profilers", "bin/get-profilers fetches them")
    (tmp_path / "Busy.java").write_text(PROGRAM)
    (tmp_path / "busy.jfc").write_text(SETTINGS)
    record = "-XX:StartFlightRecording:settings=busy.jfc,filename=busy.jfr"
    subprocess.run(["java", record, "Busy.java"], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    path = tmp_path / "busy.jfr"
    path.write_bytes(path.read_bytes() * 2)  # a recording is its chunks, one behind the other
    return path


async def test_a_real_recording_gives_the_same_profile_in_pieces_as_in_one(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = await converted(CONVERTER, LIBRARIES, [recording], tmp_path)
    in_one = read_profile(whole.read_bytes())
    monkeypatch.setattr(recordings, "PIECE_BYTES", 1)
    files = await converted(CONVERTER, LIBRARIES, [recording], tmp_path)
    assert len(files) > 1
    parts = read_parts(files)
    together = read_profile(parts.content)
    assert parts.form == "otlp"
    assert parts.samples == in_one.about.samples
    assert exact(together) == exact(in_one)
    assert any("Busy.burn" in frame.name for frame in together.frames)
    assert together.slices is not None
    assert in_one.slices is not None
    assert together.slices.step_s == pytest.approx(in_one.slices.step_s, abs=1e-6)
