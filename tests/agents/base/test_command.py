"""Whose a failed command is: the host's, unless a person wrote its text and it ended by itself."""

from __future__ import annotations

import pytest

from agents.base.command import CommandResult
from agents.base.errors import Cause, CommandError


@pytest.mark.parametrize(
    ("exit_status", "said", "by_author", "cause", "hint"),
    [
        (1, "mkdir: cannot create directory: Read-only file system", False, "host", "mounted read-only"),
        (1, "cat: write error: No space left on device", False, "host", "df -h"),
        (1, "sh: 5: echo: echo: I/O error", False, "host", "df -h"),
        (73, "the job could not be written to /x; is its disk full?", False, "host", "df -h"),
        (1, "mv: cannot create regular file: Disk quota exceeded", False, "host", "quota -s"),
        (2, "sh: 1: Cannot fork", False, "host", "ulimit -a"),
        (1, "cat: /x: Permission denied", False, "host", "lacks a right"),
        (1, "sudo: a password is required", False, "host", "lacks a right"),
        (127, "sh: 1: setsid: not found", False, "host", "check the host"),
        (1, "sort: Cannot allocate memory", False, "host", "free -m"),
        (9, "what nobody has seen before", False, "host", "BenchHub's own"),
        (137, "", False, "host", "did not end by itself"),
        (143, "E: apt was interrupted", False, "host", "did not end by itself"),
        (None, "", False, "host", "did not end by itself"),
        (3, "no such option", True, "specification", ""),
        (1, "No space left on device", True, "specification", ""),
        (137, "", True, "host", "did not end by itself"),
        (None, "", True, "host", "did not end by itself"),
    ],
)
def test_a_failed_command_says_whose_it_is_and_where_to_look(
    exit_status: int | None, said: str, by_author: bool, cause: Cause, hint: str
) -> None:
    with pytest.raises(CommandError) as failed:
        CommandResult(exit_status, stderr=said.encode()).check("Doing it", by_author=by_author)
    assert failed.value.cause == cause
    assert said in failed.value.message
    assert hint in failed.value.hint
    assert bool(failed.value.hint) == bool(hint)
