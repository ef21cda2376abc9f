"""The commands and their options."""

from __future__ import annotations

import argparse
import os

ABOUT = """Start BenchHub runs from CI, wait for them, and pass or fail the job.

Markdown goes to standard output, progress to standard error.
Exit status: 0 pass, 1 fail, 2 inconclusive, 3 error (also: no connection, bad arguments, out of time).
`bisect`: 0 the first bad one is named, 1 the bad one is not worse, 2 too much noise to tell, 3 error.
`tune`: 0 a better configuration is confirmed, 1 none is better, 2 the budget was too small to tell, 3 error.

BENCHHUB_URL and BENCHHUB_TOKEN hold the address and the token. An ID is run:12, experiment:3, bisection:4 or tuning:5.
With --state a job that was interrupted finds what it started when it runs again; SIGTERM and Ctrl-C leave it running
unless --cancel-on-interrupt is given.
"""
EXAMPLES = {
    "check": "benchhub-ci check",
    "trigger": """ID=$(benchhub-ci trigger --application tomcat --recipe limits --workload home \\
    --sut sut-1 --driver driver-1)
  benchhub-ci trigger --experiment "more files" --label commit=$GIT_COMMIT --priority low""",
    "wait": "benchhub-ci wait experiment:3 --timeout 7200",
    "gate": "benchhub-ci gate experiment:3 --metric latency_p99_ms --margin 5 --json verdict.json >benchhub.md",
    "run": 'benchhub-ci run --experiment "more files" --label commit=$GIT_COMMIT --state benchhub.state >benchhub.md',
    "bisect": """benchhub-ci bisect --good 3 --bad 7 --application tomcat --recipe limits --workload home \\
    --sut sut-1 --driver driver-1 --state bisect.state >bisect.md
  benchhub-ci bisect --parameter commit --good v1.4 --bad $GIT_COMMIT --application shop --recipe "build a commit" \\
    --workload home --sut sut-1 --driver driver-1 --json bisect.json >bisect.md""",
    "tune": """benchhub-ci tune --space space.yaml --limit "latency_p99_ms<=50" --runs 60 --smallest \\
    --state tune.state --application nginx --recipe workers --workload page \\
    --sut sut-1 --driver driver-1 >tune.md""",
    "cancel": "benchhub-ci cancel experiment:3",
    "profile": "benchhub-ci profile run:12 cpu.collapsed --profiler async-profiler --event cpu --engine perf",
}


def parser(version: str) -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(
        prog="benchhub-ci",
        description=ABOUT,
        epilog=f"example:\n  {EXAMPLES['run']}\n\nbenchhub-ci COMMAND --help says more about one of them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"benchhub-ci {version}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True
    for name, text, parents in (
        ("check", "is the address right, and what may the token do?", ()),
        ("trigger", "start an experiment's copy or a run, print the ID", (started(), set_up(), launched())),
        ("wait", "wait for the end, print the ID", (ending(6),)),
        ("gate", "judge: Markdown and exit status", (ruled(), files())),
        ("run", "trigger, wait and gate in one", (started(), set_up(), launched(), ending(6), ruled(), files())),
        ("bisect", "name the first bad one between a good and a bad one", (bisected(), set_up(), ending(24), files())),
        ("tune", "search for the best configuration of a recipe", (tuned(), set_up(), ending(24), files())),
        ("cancel", "end what was started; its hosts are put back", ()),
        ("profile", "add a profile that was taken while a run measured, print its name", (profiled(),)),
    ):
        command = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ("" if text.endswith("?") else "."),
            epilog=f"example:\n  {EXAMPLES[name]}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[common(), *parents],
        )
        if name in ("wait", "gate", "cancel"):
            command.add_argument("id", metavar="ID", help="run:12, experiment:3, bisection:4 or tuning:5")
    return root


def profiled() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("id", metavar="ID", help="run:12")
    made.add_argument("file", metavar="FILE", help="collapsed, cpuprofile, otlp, perf script, pprof or speedscope")
    made.add_argument("--profiler", required=True, metavar="NAME", help="who took it: async-profiler, perf, py-spy")
    made.add_argument("--name", help="by which the run knows it (made of part, profiler and event)")
    made.add_argument("--role", metavar="MEMBER", help="of the system (the loaded server)")
    made.add_argument("--event", help="what was sampled: cpu, wall, alloc (as the file says)")
    made.add_argument("--engine", help="what sampled it: perf, ctimer (as the file says)")
    made.add_argument("--window", metavar="S-S", help="its start and end, in seconds from where measuring began: 5-65")
    made.add_argument(
        "--cpu-time", type=seconds, metavar="S", help="of the server in the window (else: the run's samples)"
    )
    made.add_argument("--requests", type=int, metavar="N", help="answered in the window (by the run's figures)")
    return made


def seconds(text: str) -> float:
    """At least 0; `inf` is for ever. ValueError for what no wait can last, which is said with this function's name."""
    found = float(text)
    if not found >= 0:  # so that nan, of which every comparison is false, is no wait either
        raise ValueError(text)
    return found


def common() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--url", default=os.environ.get("BENCHHUB_URL"), help="the installation's address")
    made.add_argument("--token", default=os.environ.get("BENCHHUB_TOKEN"), help="better given as BENCHHUB_TOKEN")
    made.add_argument("--patience", type=seconds, default=300, metavar="S", help="how long to try again (300)")
    return made


def started() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--experiment", metavar="NAME_OR_ID", help="run a copy of this experiment")
    made.add_argument("--repetitions", type=int, help="of every variant, else as in the experiment")
    made.add_argument("--retries", type=int, help="how often to try again when a host or BenchHub fails (0 to 3)")
    return made


def set_up() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    saved = "saved under this name; NAME@3 is its version 3"
    for name, text in (("application", saved), ("recipe", saved), ("workload", saved), ("sut", "the server's host")):
        made.add_argument("--" + name, metavar="NAME", help=text)
    made.add_argument("--driver", action="append", metavar="NAME", help="a driver host; may be repeated")
    made.add_argument("--member", action="append", metavar="ROLE=HOST", help="of a system; may be repeated")
    made.add_argument("--param", action="append", metavar="K=V", help="a parameter of the recipe; may be repeated")
    return made


def launched() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--priority", choices=("low", "normal", "high"), help="high needs the role editor")
    made.add_argument("--label", action="append", metavar="K=V", help="may be repeated")
    made.add_argument("--idempotency-key", metavar="KEY", help="the same key starts nothing twice")
    made.add_argument("--state", metavar="FILE", help="remembers what was started, for a job that runs again")
    return made


def bisected() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False, parents=[launched()])
    made.add_argument("--good", required=True, help="a version of the recipe, or a commit or other label")
    made.add_argument("--bad", required=True, help="the same, known or believed to be worse")
    made.add_argument("--parameter", metavar="NAME", help="of the recipe; it takes the label (else: recipe versions)")
    made.add_argument(
        "--candidates",
        metavar="FILE",
        help="the labels in order, one a line, - for standard input (else: git's commits from good to bad)",
    )
    made.add_argument("--name", help="of the bisection (else: the recipe with both labels)")
    made.add_argument("--metric", metavar="NAME", help="decides (throughput_rps)")
    made.add_argument("--margin", type=float, metavar="PERCENT", help="losses within it are none (3)")
    made.add_argument("--max-pairs", type=int, metavar="N", help="of runs, for each step (20)")
    made.add_argument("--no-wait", action="store_true", help="only start it and print the ID, for wait and gate")
    return made


def tuned() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False, parents=[launched()])
    made.add_argument("--space", required=True, metavar="FILE", help="what may be tried, as YAML; - for standard input")
    made.add_argument("--name", help="of the search (else: of the recipe)")
    made.add_argument("--metric", metavar="NAME", help="what is to be best (throughput_rps)")
    made.add_argument("--limit", action="append", metavar="METRIC<=VALUE", help="what must hold; may be repeated")
    made.add_argument("--margin", type=float, metavar="PERCENT", help="gains within it are none (3)")
    made.add_argument("--runs", type=int, metavar="N", help="at most so many (60)")
    made.add_argument("--hours", type=float, metavar="H", help="of runs at most")
    made.add_argument("--smallest", action="store_true", help="find the smallest recipe that keeps the gain, too")
    made.add_argument(
        "--further-sut", action="append", metavar="HOST", help="a server equal to the SUT; may be repeated"
    )
    made.add_argument("--confirm-sut", metavar="HOST", help="one more equal server, on which alone it is confirmed")
    made.add_argument("--confirm-after", type=float, metavar="H", help="pause so many hours before the confirmation")
    made.add_argument("--cold", action="store_true", help="do not begin with what earlier searches found")
    made.add_argument("--no-wait", action="store_true", help="only start it and print the ID, for wait and gate")
    return made


def ending(hours: int) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--timeout", type=seconds, default=hours * 3600, metavar="S", help=f"to wait ({hours} hours)")
    made.add_argument("--cancel-on-interrupt", action="store_true", help="end what was started when the job is ended")
    return made


def ruled() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--metric", action="append", metavar="NAME", help="decides; may be repeated")
    made.add_argument("--margin", type=float, metavar="PERCENT", help="changes within it are none")
    made.add_argument("--baseline", metavar="REF", help="branch:main, label:KEY=VALUE, tag:NAME, pinned:NAME or run:12")
    made.add_argument("--inconclusive", choices=("neutral", "pass", "fail"), help="what too little data counts as")
    return made


def files() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--comment", metavar="FILE", help="the Markdown when it is worth a comment, else empty")
    made.add_argument("--json", metavar="FILE", help="the whole answer")
    return made
