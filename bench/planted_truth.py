"""Plants a method that burns 0, 1, 2, 5 or 10 % more CPU per request, and looks for it in real profiles of real runs.

A small JVM serves pages, each request works in a dozen methods; the candidate's `planted` burns more. An experiment is
some blocks with a run of each variant in random order, walked by BenchHub's own runner over SSH on this machine, with
wrk and a real profiler in a window of the load. Prints Markdown: how often the method was found, where it stood, how
often another one was named; beside it the rank by the raw difference of merged samples, which is what
`jfrconv --diff` colours. Needs wrk, a JDK, sshd and the jars of bin/get-profilers (BENCHHUB_PROFILERS).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents import events as e
from agents.profiles.functions import functions_of
from agents.profiles.reading import read_profile, unpacked
from agents.spec import RunSpec
from bench.planted_profiles import summed
from experiments.analysis.function_costs import ProfiledRun, compare_functions
from tests.agents.run_lab import Lab, Watched, address_of, make_lab
from tests.agents.specs import make_spec
from tests.sshd import running_sshd

PLANTED = "Shop.planted"
FUNCTIONS = 12
PROGRAM = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class Shop {
  static final int EXTRA = Integer.getInteger("planted.turns", 0);
METHODS
  static long planted(long s) { for (int i = 0; i < BASE + EXTRA; i++) s = s * 6364136223846793005L + i; return s; }
  static long request(long s) { return planted(CALLS); }
  public static void main(String[] given) throws Exception {
    String port = System.getProperty("quarkus.http.port"), address = System.getProperty("quarkus.http.host");
    var server = HttpServer.create(new InetSocketAddress(address, Integer.parseInt(port)), 0);
    server.createContext("/", exchange -> {
      byte[] said = ("hello " + request(System.nanoTime())).getBytes();
      exchange.sendResponseHeaders(200, said.length);
      exchange.getResponseBody().write(said);
      exchange.close();
    });
    server.start();
  }
}
"""
TURNS = 4_000_000
"""Of all methods together in a request: some milliseconds of CPU."""
BASE = TURNS // 20
NODELAY = "-Dsun.net.httpserver.nodelay=true"
"""Else each answer waits up to 40 ms for the acknowledgement of its head, and the server is never busy."""


class NoProfile(Exception):
    """A run had no profile."""


@dataclass
class Tally:
    """What came of the experiments of one planted percentage."""

    experiments: int = 0
    found: int = 0
    first: int = 0
    false: int = 0
    ranks: tuple[int, ...] = ()
    raw_ranks: tuple[int, ...] = ()
    changes_pct: tuple[float, ...] = ()


def program(folder: Path) -> Path:
    """The server as a jar. Its methods share the turns as 1, 1/2, 1/3 and so on."""
    weights = [1 / (number + 1) for number in range(FUNCTIONS)]
    turns = [round((TURNS - BASE) * weight / sum(weights)) for weight in weights]
    methods = "\n".join(
        f"  static long work{n}(long s) "
        f"{{ for (int i = 0; i < {count}; i++) s = s * 6364136223846793005L + i; return s; }}"
        for n, count in enumerate(turns)
    )
    calls = "s"
    for n in range(FUNCTIONS):
        calls = f"work{n}({calls})"
    text = PROGRAM.replace("METHODS", methods).replace("CALLS", calls).replace("BASE", str(BASE))
    (folder / "Shop.java").write_text(text)
    subprocess.run(["javac", "Shop.java"], cwd=folder, check=True, timeout=300)
    subprocess.run(["jar", "cfe", "shop.jar", "Shop", "Shop.class"], cwd=folder, check=True, timeout=300)
    return folder / "shop.jar"


def spec_of(lab: Lab, jar: Path, percent: int, profiler: str, load_s: int) -> RunSpec:
    extra = TURNS * percent // 100
    spec = make_spec(
        server={
            "kind": "jar",
            "jar": str(jar),
            "framework": "quarkus",
            "port": lab.port,
            "cpus": "0",
            "jvm_options": ["-Xmx64m", "-XX:+UseSerialGC", NODELAY, f"-Dplanted.turns={extra}"],
            "ready": {"timeout_s": 300},
        },
        workload={
            "driver": {"kind": "wrk", "connections": 4, "threads": 1, "binary": str(lab.folder / "wrk")},
            "phases": [
                {"name": "warm-up", "kind": "warm_up", "duration_s": 3},
                {"name": "load", "kind": "measure", "duration_s": load_s},
            ],
            "cpus": "1",
        },
        sut=address_of("sut", lab.sut),
        drivers=(address_of("driver", lab.driver),),
    )
    return RunSpec.model_validate({**spec.model_dump(mode="json"), "profilers": [profiler] if profiler else []})


async def profiled(lab: Lab, spec: RunSpec, block: int) -> ProfiledRun:
    """One run with its profile. NoProfile without one, RuntimeError when it failed, or left something on a host."""
    watched = Watched(lab)
    record = await watched.run(spec)
    if record.failed is not None or record.restored != e.Restored({}):
        raise RuntimeError(watched.log)
    taken = next(iter(watched.of(e.ProfileTaken)), None)
    if taken is None:
        raise NoProfile(watched.log.strip().splitlines()[-1])
    costs = functions_of(read_profile(unpacked(watched.kept[taken.file])))
    return ProfiledRun(
        block,
        taken.event,
        taken.engine,
        taken.cpu_time_s,
        taken.requests or 0,
        taken.samples,
        costs.unknown_ratio,
        costs.self_ratio,
        costs.total_ratio,
    )


async def experiment(
    lab: Lab, jar: Path, percent: int, options: argparse.Namespace, seed: int
) -> tuple[list[ProfiledRun], list[ProfiledRun]]:
    sides: tuple[list[ProfiledRun], list[ProfiledRun]] = ([], [])
    for block in range(options.blocks):
        order = [0, 1]
        random.Random(f"{seed}/{block}").shuffle(order)  # noqa: S311 - repeatable on purpose
        for side in order:
            spec = spec_of(lab, jar, percent * side, options.profiler, options.load_s)
            sides[side].append(await profiled(lab, spec, block))
    return sides


def tallied(tally: Tally, a: Sequence[ProfiledRun], b: Sequence[ProfiledRun]) -> None:
    changes = compare_functions(a, b)
    named = [row.name for row in changes.own if row.verdict in ("more", "less")]
    rows = [row.name for row in changes.own]
    before, after = summed(list(a)), summed(list(b))
    n_a, n_b = sum(before.values()), sum(after.values())
    raw = sorted(rows, key=lambda name: -abs(after.get(name, 0.0) / n_b - before.get(name, 0.0) / n_a))
    tally.experiments += 1
    tally.found += any(row.name == PLANTED and row.verdict == "more" for row in changes.own)
    tally.first += named[:1] == [PLANTED]
    tally.false += any(name != PLANTED for name in named)
    if PLANTED in rows:
        tally.ranks += (rows.index(PLANTED) + 1,)
        tally.raw_ranks += (raw.index(PLANTED) + 1,)
    tally.changes_pct += (100 * changes.whole.change_us / changes.whole.baseline_us,)
    print(f"# named: {', '.join(named) or 'none'}; samples: {[run.samples for run in (*a, *b)]}", file=sys.stderr)


def row(percent: int, tally: Tally) -> str:
    shown = [f"{count}" for count in (tally.experiments, tally.found, tally.first, tally.false)]
    shown += [" ".join(map(str, ranks)) or "none" for ranks in (tally.ranks, tally.raw_ranks)]
    shown += [" ".join(f"{change:+.1f}" for change in tally.changes_pct)]
    return f"| {percent} % | {' | '.join(shown)} |"


async def measured(options: argparse.Namespace, folder: Path) -> None:
    print("| planted | experiments | found | first | any false | rank | rank by raw difference | CPU per request, % |")
    print("| ---: | ---: | ---: | ---: | ---: | --- | --- | --- |", flush=True)
    places = [folder / name for name in ("sut", "driver", "lab")]
    for place in places:
        place.mkdir()
    began = time.monotonic()
    with running_sshd(places[0]) as sut, running_sshd(places[1]) as driver:
        lab, jar = make_lab(sut, driver, places[2]), program(folder)
        tallies = {percent: Tally() for percent in options.percent}
        for number in range(options.experiments):  # each percentage in turn, so that a bounded time is for all of them
            for percent, tally in tallies.items():
                if time.monotonic() - began < options.seconds:
                    try:
                        sides = await experiment(lab, jar, percent, options, seed=1000 * percent + number)
                    except NoProfile as error:  # a busy machine left nothing of a window, whatever was planted
                        print(f"# an experiment without a profile in one of its runs: {error}", file=sys.stderr)
                    else:
                        tallied(tally, *sides)
        for percent, tally in tallies.items():
            print(row(percent, tally), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--percent", type=int, nargs="+", default=[0, 1, 2, 5, 10])
    parser.add_argument("--experiments", type=int, default=20, help="of each planted percentage")
    parser.add_argument("--blocks", type=int, default=5, help="runs of each variant in an experiment")
    parser.add_argument("--load-s", type=int, default=12, help="the measured load of a run")
    parser.add_argument("--profiler", default="async-profiler")
    parser.add_argument("--seconds", type=float, default=36_000.0, help="no experiment begins after that")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchhub-planted-") as folder:
        asyncio.run(measured(options, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
