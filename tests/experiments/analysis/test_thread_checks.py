"""What is said of the server's threads: observations with their numbers, never a judgement."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.recordings import read_recording
from agents.servers.base.threads import nio_threads
from experiments.analysis.findings import HostFigures, LoadFigures, ThreadGroup
from experiments.analysis.thread_checks import threads_were_seen
from experiments.analysis.thresholds import DEFAULT_THRESHOLDS

LOAD = LoadFigures("wrk", "closed", "service_time")
PUBLISHED = Path(__file__).parents[2] / "agents" / "cases" / "recordings" / "top-published.txt"
EXEC, POLLER = "http-nio-8080-e", "http-nio-8080-P"


def said(groups: list[ThreadGroup], cpus: int) -> str:
    by_use = [group.name for group in sorted(groups, key=lambda group: -group.cpus)]
    requests, poller = nio_threads(by_use) or ("", "")
    seen = HostFigures(threads=tuple(groups), server_cpus=cpus, request_threads=requests, poller_thread=poller)
    found = threads_were_seen(seen, LOAD, DEFAULT_THRESHOLDS)
    assert found is not None
    return f"{found.level}: {found.sentence}"


def test_the_published_frame_of_top_shows_seven_request_threads_and_a_poller_that_fill_eight_cpus() -> None:
    lines = read_recording("top", PUBLISHED.read_text()).channels
    names = [name.removeprefix("threads.").removesuffix(".count") for name in lines if name.endswith(".count")]
    groups = [
        ThreadGroup(name, int(lines[f"threads.{name}.count"].values[0]), lines[f"threads.{name}.cpu_ratio"].values[0])
        for name in names
    ]
    assert said(groups, 8) == (
        "ok: The busiest threads of the server: http-nio-8080-e (7 threads, 97 % of a CPU each) used 6.76 of 8 CPUs; "
        "next http-nio-8080-P (1 thread) used 0.95. 7 request threads and the poller used 96 % of the 8 CPUs, and each "
        "had a CPU of its own: request threads = CPUs - 1 or fewer."
    )


@pytest.mark.parametrize(
    ("groups", "cpus", "words"),
    [
        (
            [ThreadGroup(EXEC, 200, 7.4), ThreadGroup(POLLER, 1, 0.5)],
            8,
            "the poller got 0.50 of a CPU, and had to wait",
        ),
        ([ThreadGroup(EXEC, 200, 7.4), ThreadGroup(POLLER, 1, 0.5)], 8, "Whether 7 request threads (CPUs - 1)"),
        ([ThreadGroup(EXEC, 200, 0.8), ThreadGroup(POLLER, 1, 0.2)], 1, "they took turns"),
        ([ThreadGroup(EXEC, 200, 2.0), ThreadGroup(POLLER, 1, 0.2)], 8, "there was room"),
        ([ThreadGroup("Default Executo", 4, 3.0)], 4, "Default Executo (4 threads, 75 % of a CPU each) used 3.00 of 4"),
        ([ThreadGroup("https-jsse-nio-", 12, 3.0)], 4, "used 3.00 of 4 CPUs."),
        ([], 8, "skipped: Not checked"),
        ([ThreadGroup(EXEC, 200, 7.4)], 0, "skipped: Not checked"),
    ],
)
def test_what_the_threads_say_about_the_cpus(groups: list[ThreadGroup], cpus: int, words: str) -> None:
    assert words in said(groups, cpus)
