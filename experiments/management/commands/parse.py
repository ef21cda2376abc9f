"""Reads the output of a load tool or a benchmark without anything else: no database, no server."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from agents.base.errors import ParseError
from agents.drivers.reading import FILE_READERS, READERS, read_report, report_kinds, split_report
from agents.readers import RESULT_READERS
from agents.readers.reading import decoded, guesses, is_result_kind, read_results
from experiments.management import base

MAX_BYTES = 64 << 20


class Command(base.Command):
    help = (
        "Print what a tool's raw output says, as JSON: a load tool's report, or the named results of a file of "
        "benchmarks. Exit status 1 when it cannot be read, or holds no result that counts."
    )
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "kind", metavar="KIND", help=f"one of {', '.join(sorted({*READERS, *RESULT_READERS}))}; or auto"
        )
        parser.add_argument("file", metavar="FILE", help="the tool's output; - is standard input")
        parser.add_argument(
            "--command", default="", dest="tool_command", help="the tool's command line; some figures stand only there"
        )

        parser.add_argument(
            "--split", action="store_true", help="a file to which several runs were appended: print each of them"
        )

    def handle(self, *_arguments: Any, kind: str, file: str, tool_command: str, split: bool, **_options: Any) -> None:
        try:
            if kind == "auto":
                kind = self._guess(file)
            if is_result_kind(kind):
                if split:
                    raise CommandError("--split is for reports of load tools; a file of results is one already.")
                self._print_results(kind, file)
                return
            if split:
                reports = [read_report(kind, part, tool_command) for part in split_report(kind, _text(file))]
                self.stdout.write(json.dumps([one.to_json() for one in reports], indent=2, ensure_ascii=False))
                return
            if kind in FILE_READERS and file != "-" and _size_bytes(file) > MAX_BYTES:
                report = FILE_READERS[kind](Path(file), _Progress(self.stderr))
            else:
                report = read_report(kind, _text(file), tool_command)
        except ParseError as error:
            line = f", line {error.line}" if error.line is not None else ""
            hint = f" {error.hint}" if error.hint else ""
            raise CommandError(f"{file}{line}: {error.message}.{hint}") from error
        self.stdout.write(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
        if not report.complete:
            raise CommandError(f"{file}: {report.tool} did not run: {report.error}")

    def _guess(self, file: str) -> str:
        """The form that the file looks like, said on standard error."""
        if file == "-":
            raise CommandError("auto needs a FILE; standard input can be read once only.")
        text = _text(file)
        names = {one.form: one.title for one in guesses(text)} or dict.fromkeys(report_kinds(text), "a load tool")
        if len(names) != 1:
            looks = f"It may be {' or '.join(names)}." if names else "No form is like it."
            raise CommandError(f"{file} cannot be told by its content. {looks} Name its KIND.")
        ((form, title),) = names.items()
        self.stderr.write(f"{file} looks like {form} ({title}).")
        return form

    def _print_results(self, kind: str, file: str) -> None:
        readout = read_results(kind, _text(file), file if file != "-" else "")
        self.stdout.write(json.dumps(readout.to_json(), indent=2, ensure_ascii=False, allow_nan=False))
        if not readout.results and readout.why:
            raise CommandError(f"{file}: there is no result in it: {readout.why}")


class _Progress:
    """A line on standard error at each tenth of a file."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._tenths = 0

    def __call__(self, done_bytes: int, all_bytes: int) -> None:
        if (tenths := 10 * done_bytes // all_bytes) > self._tenths:
            self._tenths = tenths
            self._out.write(f"{done_bytes / 1e6:,.0f} of {all_bytes / 1e6:,.0f} MB")


def _size_bytes(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error


def _text(file: str) -> str:
    """The file as text; wrong bytes are replaced, so that one of them loses nothing else."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as source:
                data = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise CommandError(f"{file} is larger than {MAX_BYTES >> 20} MB.")
    return decoded(data)
