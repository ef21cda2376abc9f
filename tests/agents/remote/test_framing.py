from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agents.remote.framing import MAX_NOISE_BYTES, Framed, command_text, for_any_shell, from_input, stream_text
from tests import needs

MARK = "0123456789abcdef"
SHELLS = (("bash",), ("dash",), ("zsh",), ("fish",), ("tcsh",), ("bsd-csh",), ("busybox", "ash"))
WORDS = ("!x", "a'b", "back\\slash \\n \\\\", "two\n\nlines\n", "", "é", "$(id)", "`id`", "*", "%s", "#" * 3000)


def read(output: bytes, size: int) -> tuple[bytes, Framed]:
    """What of the output is the command's, however it breaks into chunks."""
    framed = Framed(MARK)
    own = b"".join(framed.feed(output[at : at + size]) for at in range(0, len(output), size))
    return own + framed.close(), framed


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[-1])
def test_every_login_shell_runs_a_command_word_for_word(shell: tuple[str, ...], tmp_path: Path) -> None:
    needs.require_program(shell[0])
    told = 'printf "%s|" "$@"; cat; echo err >&2; exit 7'
    text = command_text(("sh", "-c", told, "sh", *WORDS), MARK, limit_s=60, privileged=False)
    for sent, typed in ((for_any_shell(text), b""), from_input(text)):
        done = subprocess.run(
            (*shell, "-c", sent), input=typed + b"rest", capture_output=True, check=False, cwd=tmp_path
        )
        out, framed = read(done.stdout, 1 << 16)
        assert out.decode() == "|".join(WORDS) + "|rest"
        assert (framed.exit_status, done.returncode) == (7, 7)
        assert read(done.stderr, 1 << 16)[0] == b"err\n"


@pytest.mark.parametrize("size", [1, 2, 7, 40, 1000])
def test_only_what_stands_between_the_marks_is_the_commands(size: int) -> None:
    told = b"Welcome!\nno newline" + f"{MARK}-begins\n".encode() + b"\n\x00own\n" + f"\n{MARK}-ends-3\nbye".encode()
    own, framed = read(told, size)
    assert (own, framed.noise, framed.exit_status) == (b"\n\x00own\n", b"Welcome!\nno newline", 3)


@pytest.mark.parametrize("size", [1, 1000])
def test_a_command_that_was_cut_off_has_no_status_and_keeps_what_it_said(size: int) -> None:
    own, framed = read(f"{MARK}-begins\nhalf\n{MARK}-en".encode(), size)
    assert (own, framed.begun, framed.ended) == (f"half\n{MARK}-en".encode(), True, False)


def test_what_never_begins_is_kept_in_part_for_a_message() -> None:
    own, framed = read(b"go away\n" * 100_000, 4096)
    assert (own, framed.begun, len(framed.noise)) == (b"", False, MAX_NOISE_BYTES)


def test_what_runs_on_is_not_held_back() -> None:
    framed = Framed(MARK, runs_on=True)
    assert framed.feed(f"noise{MARK}-begins\ntick\n".encode()) == b"tick\n"
    assert framed.feed(b"\n") == b"\n"


@pytest.mark.parametrize(("privileged", "asked"), [(True, True), (False, False)])
def test_root_is_asked_for_only_on_request(privileged: bool, asked: bool) -> None:
    assert ("sudo -n --" in command_text(("id",), MARK, limit_s=5, privileged=privileged)) is asked
    assert ("sudo -n --" in stream_text(("id",), MARK, privileged=privileged)) is asked
