"""`bh`: log in, launch, watch, compare, import and export from a terminal; tools for an assistant."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from .assistant import serve
from .connection import Trouble
from .ending import ERROR, FAIL, INCONCLUSIVE, PASS, status_of
from .hub import Hub, Run
from .importing import import_files
from .login import keep_login
from .watching import figures_of, follow

EXIT_STATUS = {"pass": PASS, "fail": FAIL, "inconclusive": INCONCLUSIVE, "error": ERROR}
_SETUP = ("application", "recipe", "workload", "sut")
_IMPORTED = ("application", "recipe", "workload", "measured_at", "command", "split")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status: 0 pass or done, 1 fail, 2 inconclusive, 3 an error, which is said."""
    return status_of("bh", lambda: _parser().parse_args(arguments), _perform)


def _perform(options: argparse.Namespace) -> int:
    perform: Callable[[argparse.Namespace], int] = options.perform
    return perform(options)


def _login(options: argparse.Namespace) -> int:
    token = options.token or getpass.getpass("Token: ")
    me = Hub(options.url, token).me()
    print(f"{me['user']}, {me['role']} of {me['team_name']}; kept in {keep_login(options.url.rstrip('/'), token)}")
    return 0


def _run(options: argparse.Namespace) -> int:
    hub = Hub()
    setup = {name: getattr(options, name) for name in _SETUP}
    labels = _pairs(options.label)
    # Parameters as they were typed: what is a number, and what a text that looks like one, is the recipe's to say.
    parameters = _pairs(options.param)
    run = hub.launch(**setup, drivers=options.driver, key=options.key, labels=labels, parameters=parameters)
    print(f"Run #{run.number}: {run.url}", file=sys.stderr)
    return 0 if options.no_wait else _followed(run)


def _watch(options: argparse.Namespace) -> int:
    return _followed(Hub().run(options.number))


def _followed(run: Run) -> int:
    """Watch the run to its end, then say what it came to."""
    run = follow(run)
    verdict = run.verdict()
    print(f"{verdict.outcome}: {' '.join(verdict.reasons)}")
    for line in figures_of(run.metrics):
        print(line)
    return EXIT_STATUS[verdict.outcome]


def _compare(options: argparse.Namespace) -> int:
    found = Hub().compare(options.baseline, *options.candidate)
    numbers = (f"#{run['number']}" for run in found["runs"])
    print(f"{'':28} " + "  ".join(f"{number:22}" for number in numbers).rstrip())
    for row in found["metrics"]:
        values = ["-" if value is None else f"{value:.6g}" for value in row["values"]]
        changes = ["" if change is None else f"({change:+.1f} %)" for change in row["changes_pct"]]
        cells = (f"{value} {change}".strip() for value, change in zip(values, changes, strict=True))
        print(f"{row['metric']:28} " + "  ".join(f"{cell:22}" for cell in cells).rstrip())
    for one in found["confounders"]:
        print(f"! {one['what']} differs")
    return 0


def _import(options: argparse.Namespace) -> int:
    more: dict[str, Any] = {name: getattr(options, name) for name in _IMPORTED if getattr(options, name)}
    if options.machine:
        more["machine"] = options.machine.read_text(encoding="utf-8", errors="replace")
    if options.direction:
        more["directions"] = dict(map(_direction, options.direction))
    labels = _pairs(options.label)
    import_files(Hub(), options.file, kind=options.kind, key=options.key, labels=labels, more=more)
    return 0


def _direction(text: str) -> tuple[str, str]:
    name, _, better = text.rpartition("=")  # names of figures may have one as well
    if not name or better not in ("lower", "higher"):
        raise Trouble(f"--direction reads NAME=lower or NAME=higher, not {text!r}.")
    return name, better


def _export(options: argparse.Namespace) -> int:
    labels = [("label", f"{key}={value}") for key, value in map(_pair, options.label)]
    query = urlencode([*map(_pair, options.filter), *labels])
    options.file.write_bytes(Hub().api.download(f"/runs.parquet?{query}"))
    print(f"{options.file}: {options.file.stat().st_size} bytes", file=sys.stderr)
    return 0


def _mcp(_options: argparse.Namespace) -> int:
    return serve()


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    return dict(map(_pair, texts))


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise Trouble(f"key=value is needed, not {text!r}.")
    return key, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bh", description="BenchHub from a terminal.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, perform: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.set_defaults(perform=perform)
        return one

    login = command("login", _login, "Keep address and token of an installation.")
    login.add_argument("url")
    login.add_argument("--token", default="", help="asked for when it is left out")
    run = command("run", _run, "Launch a run and watch it.")
    for name in _SETUP:
        run.add_argument(f"--{name}", required=True)
    run.add_argument("--driver", action="append", required=True, help="may be repeated")
    run.add_argument("--param", action="append", default=[], metavar="K=V")
    run.add_argument("--no-wait", action="store_true")
    run.add_argument("--key", default="", help="the same one launches nothing twice")
    watch = command("watch", _watch, "Follow a run to its end.")
    watch.add_argument("number", type=int)
    compare = command("compare", _compare, "Figures of runs beside each other.")
    compare.add_argument("baseline", type=int)
    compare.add_argument("candidate", type=int, nargs="+")
    take = command("import", _import, "Store files of tools that ran elsewhere; a file is known by its content.")
    take.add_argument("file", type=Path, nargs="+")
    take.add_argument("--kind", default="auto")
    take.add_argument("--key", default="", help="a file that is stored already is stored again under another one")
    better = "which is better of a figure of which the file does not say it; * for all; may be repeated"
    take.add_argument("--direction", action="append", default=[], metavar="NAME=lower", help=better)
    for name in ("application", "recipe", "workload"):
        take.add_argument(f"--{name}", default="", help="its name in the team")
    take.add_argument("--measured-at", default="", metavar="TIME", help="2026-08-01T12:00:00Z; else now")
    take.add_argument("--machine", type=Path, metavar="FILE", help="what lscpu and others printed at the server")
    take.add_argument("--command", default="", help="the load tool's command line; some figures stand only there")
    take.add_argument("--split", action="store_true", help="several runs that one file was appended to")
    export = command("export", _export, "All runs of the filters as a Parquet file.")
    export.add_argument("file", type=Path)
    export.add_argument(
        "--filter", action="append", default=[], metavar="K=V", help="as GET /runs: recipe=limits; may be repeated"
    )
    command("mcp", _mcp, "Tools for an assistant, over standard input and output (Model Context Protocol).")
    for one in (run, take, export):
        one.add_argument("--label", action="append", default=[], metavar="K=V", help="may be repeated")
    return parser
