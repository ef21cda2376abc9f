"""Reads mutated texts with every parser of reports, result files, recordings, timer tables, profiles and monitors.

Each text must give figures or a ParseError, in at most 2 s of CPU time. Prints Markdown; exit status 1 when another
error came or a text took longer. Texts that did so are kept in the directory of `--keep` (default: the current one).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random

from agents.base.errors import ParseError
from agents.drivers import DRIVERS
from agents.drivers.reading import REPORTING, read_report
from agents.formats.gc_log import parse_pauses
from agents.formats.jvm_log import course_of, read_collections, read_safepoints
from agents.monitors import MONITORS
from agents.monitors.base import Reading
from agents.profilers.topdown import figures_of, read_counts
from agents.profiles import PROFILE_FORMATS
from agents.profiles.functions import functions_of
from agents.profiles.reading import form_of, unpacked
from agents.readers import RESULT_READERS
from agents.readers.reading import guesses, read_results
from agents.recordings import read_recording
from agents.results.timer_tables import read_timer_table
from tests.agents.mutations import mutate
from tests.agents.recorded import CASES, Case, cases

LIMIT_S = 2.0
LONG_CHARS = 8000


@dataclass(frozen=True)
class Whole:
    """A text that can be read, and how: `figures` gives what can be written as JSON."""

    text: str
    figures: Callable[[str], object]


@dataclass
class Count:
    """What came of the texts of one parser."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    wrong: int = 0
    slowest_s: float = 0.0
    spent_s: float = 0.0

    @property
    def good(self) -> bool:
        return not self.wrong and self.slowest_s <= LIMIT_S


def main() -> int:
    parsers = every_parser()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=50_000, help="how many texts each parser gets")
    parser.add_argument("--parser", choices=sorted(parsers), action="append", help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path())
    options = parser.parse_args()
    print("| parser | texts | read | refused | another error | slowest, s | CPU, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    good = True
    for name in options.parser or sorted(parsers):
        count = fuzz(name, parsers[name], options.inputs, Random(f"{options.seed} {name}"), options.keep)  # noqa: S311
        print(
            f"| {name} | {count.inputs:,} | {count.read:,} | {count.refused:,} | {count.wrong} "
            f"| {count.slowest_s:.2f} | {count.spent_s:.0f} |",
            flush=True,
        )
        good = good and count.good
    return 0 if good else 1


def every_parser() -> dict[str, list[Whole]]:
    """The parsers by name, each with the recorded texts that it reads."""
    found: dict[str, list[Whole]] = defaultdict(list)
    for kind in REPORTING:
        for case in cases(kind):
            found[case.format].append(Whole(_beginning(case), partial(_report, kind)))
        for case in cases(f"{kind}/patterns"):
            found[f"{kind}, patterns"].append(Whole(case.text, partial(_own_report, kind, case.about["driver"])))
    for kind in RESULT_READERS:
        for case in cases(kind):
            found[case.format].append(Whole(case.text, partial(_results, kind)))
    for case in cases("recordings"):
        kind = case.name.partition("/")[2].partition("-")[0]
        found[case.format].append(Whole(case.text, partial(_recording, kind)))
    for case in cases("timer_tables"):
        found[case.format].append(Whole(case.text, _timers))
    for path in sorted((CASES / "profiles").iterdir()):
        if not path.name.endswith(".expected.json"):
            data = unpacked(path.read_bytes())
            kind = form_of(data).kind
            found[f"profile, {kind}"].append(Whole(_short_profile(data, kind), partial(_profile, kind)))
    found["profile, topdown"].append(Whole((CASES / "topdown" / "perf-stat.txt").read_text(), _counters))
    for path in sorted((CASES / "jvm_log").iterdir()):
        found["jvm-log"].append(Whole(_lines(path.read_text()), _jvm_log))
    for kind in MONITORS:
        for path in sorted((CASES / f"monitor-{kind}").glob("*.before.txt")):
            before, now = path.read_text(), path.with_name(path.name.replace(".before.", ".now.")).read_text()
            found[f"monitor, {kind}"].append(Whole(now, partial(_samples, kind, before)))
            found[f"monitor, {kind}"].append(Whole(before, partial(_samples_until, kind, now)))
    return found


def _report(kind: str, text: str) -> object:
    return read_report(kind, text).to_json()


def _results(kind: str, text: str) -> object:
    """As an upload is read: guessed, then read as a file of the tool."""
    guesses(text)
    return read_results(kind, text).to_json()


def _own_report(kind: str, options: object, text: str) -> object:
    return DRIVERS[kind].model_validate(options).parse(text).to_json()


def _recording(kind: str, text: str) -> object:
    return asdict(read_recording(kind, text))


def _timers(text: str) -> object:
    return [asdict(row) for row in read_timer_table(text)]


def _profile(kind: str, text: str) -> object:
    """As an upload is read: its form is looked for first. A character is a byte, as pprof is no text."""
    data = text.encode("latin-1", "replace")
    for form in PROFILE_FORMATS.values():
        form.looks_like(data)
    return asdict(functions_of(PROFILE_FORMATS[kind].read(data)))


def _counters(text: str) -> object:
    return figures_of(read_counts(text))


def _jvm_log(text: str) -> object:
    lists = (parse_pauses(text), read_collections(text), read_safepoints(text))
    return [vars(one) for found in lists for one in found], course_of(text)


def _samples(kind: str, before: str, now: str) -> object:
    """Of a monitor, between a reading that is whole and this one."""
    found = MONITORS[kind].samples(Reading(1.0, before), Reading(2.0, now))
    return {channel.name: value for channel, value in found.items()}


def _samples_until(kind: str, now: str, before: str) -> object:
    return _samples(kind, before, now)


def _short_profile(data: bytes, kind: str) -> str:
    text = data.decode("latin-1")
    return _lines(text) if kind in ("collapsed", "perf-script") else text


def _lines(text: str) -> str:
    """The first lines of a long text."""
    return text[: text.rindex("\n", 0, LONG_CHARS) + 1] if len(text) > LONG_CHARS else text


def _beginning(case: Case) -> str:
    """The text, or the beginning of a long one: its rows are all alike."""
    text = case.text
    if len(text) <= LONG_CHARS:
        return text
    if case.format != "jmeter-jtl-xml":
        return text[: text.rindex("\n", 0, LONG_CHARS) + 1]
    end = "\n</httpSample>\n"
    return text[: text.rindex(end, 0, LONG_CHARS)] + end + "</testResults>\n"


def fuzz(name: str, wholes: list[Whole], inputs: int, random: Random, keep: Path) -> Count:
    """Read that many mutated texts; those that give another error, or take too long, are kept."""
    texts = [whole.text for whole in wholes]
    count = Count(inputs)
    for _ in range(inputs):
        whole = random.choice(wholes)
        text = mutate(random, whole.text, texts)
        start_s = time.process_time()
        try:
            json.dumps(whole.figures(text), allow_nan=False, default=str)
            count.read += 1
        except ParseError:
            count.refused += 1
        except Exception as error:
            count.wrong += 1
            _keep(keep / f"fuzz-{name}-{count.wrong}.txt", text)
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr, flush=True)
        took_s = time.process_time() - start_s
        if took_s > LIMIT_S:
            _keep(keep / f"fuzz-{name}-slow.txt", text)
        count.slowest_s = max(count.slowest_s, took_s)
        count.spent_s += took_s
    return count


def _keep(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")


if __name__ == "__main__":
    sys.exit(main())
