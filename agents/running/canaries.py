"""Canaries: short checks of a host before an experiment, the same each time, so that a host that got slower is seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.readers.base.result_reader import Source
from agents.readers.fio import read as read_fio
from agents.readers.iperf3 import read as read_iperf3

CanaryName = Literal["cpu", "disk", "network"]
DISK_S, NETWORK_S, LISTEN_S = 2, 2, 15
ROUNDS, TURNS = 5, 100_000
NETWORK_PORT = 5201

# The best of some rounds: what disturbs one of them makes it slower, never faster.
_CPU = """
rounds=$1 turns=$2 best=
while [ "$rounds" -gt 0 ]; do
  began=$(date +%s%N) turn=0
  while [ "$turn" -lt "$turns" ]; do turn=$((turn + 1)); done
  took=$(($(date +%s%N) - began))
  if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
  rounds=$((rounds - 1))
done
echo "$turns turns in $best ns"
"""

# The file lies where runs lie, so that it is the disk that they use, and goes however this ends.
_DISK = """
command -v fio >/dev/null || exit 0
cd && home=$(pwd -P) || exit 1
[ ! -e "$home/.benchhub/machine" ] || home=$home/.benchhub
place=$(mktemp -d "$home/canary.XXXXXX") || exit 1
trap 'rm -rf -- "$place"' EXIT
trap 'exit 1' HUP INT TERM
cd "$place" || exit 1
timeout 60 fio --name=canary --rw=randread --bs=4k --size=64m --iodepth=1 --ioengine=psync --direct=1 --time_based \\
  --runtime="$1" --output-format=json
"""

_LISTEN = """
command -v iperf3 >/dev/null || exit 0
tries=$((4 * $2))
while [ "$tries" -gt 0 ]; do
  timeout "$2" iperf3 -s -1 -p "$1"
  case $? in 0 | 124) exit ;; esac
  tries=$((tries - 1))
  sleep 0.25
done
"""
# It begins before the other side listens: until then nobody answers. Its exit status is 0 even so.
_SEND = """
command -v iperf3 >/dev/null || exit 0
tries=40
while :; do
  said=$(timeout 12 iperf3 -c "$1" -p "$2" -t "$3" -J)
  tries=$((tries - 1))
  case $said in *'"error":'*refused* | *'"error":'*busy*) ;; *) break ;; esac
  [ "$tries" -gt 0 ] || break
  sleep 0.5
done
printf '%s\\n' "${said:-{\\"error\\": \\"it did not end in time\\"\\}}"
"""


@dataclass(frozen=True)
class Canary:
    """One check: its `title` in sentences, the `unit` of its figure, and whether more of it is better.

    `package` brings its program, "" where every host has it.
    """

    name: CanaryName
    title: str
    unit: str
    higher_is_better: bool
    package: str
    parse: Callable[[str], float | None]


def cpu_command() -> Command:
    """Counts in a shell, on one CPU, for about a second."""
    return script(_CPU, str(ROUNDS), str(TURNS))


def disk_command() -> Command:
    """Reads 4 KiB at random places of a file of 64 MiB beside the runs, past the page cache; nothing without fio."""
    return script(_DISK, str(DISK_S), timeout_s=90)


def network_commands(address: str, port: int = NETWORK_PORT) -> tuple[Command, Command]:
    """What listens for one check on the SUT at `address`, and what sends from the driver host, both at the same time.

    Who listens ends after one check, or after LISTEN_S. Without iperf3 neither does anything.
    """
    listen = script(_LISTEN, str(port), str(LISTEN_S), timeout_s=LISTEN_S + 10)
    return listen, script(_SEND, address, str(port), str(NETWORK_S), timeout_s=60)


def parse_cpu(text: str) -> float | None:
    """Turns per second of the fastest round. ParseError when the text is none of the check."""
    match = re.search(r"^(\d+) turns in (\d+) ns$", text, re.MULTILINE)
    if match is None or not int(match[2]):
        raise ParseError("this is no answer of the CPU check")
    return int(match[1]) / int(match[2]) * 1e9


def parse_disk(text: str) -> float | None:
    """Reads per second; None where the host has no fio. Raises ParseError."""
    if not text.strip():
        return None
    found = [result.figures.get("iops") for result in read_fio(Source(text)).results]
    values = [float(value) for value in found if isinstance(value, int | float)]
    return values[0] if values else None


def parse_network(text: str) -> float | None:
    """Bits per second that arrived; None where a host has no iperf3. ParseError when it could not measure."""
    if not text.strip():
        return None
    found = read_iperf3(Source(text))
    values = [result.figures.get("bits_per_s") for result in found.results if not result.why]
    if len(values) != 1 or not isinstance(values[0], int | float):
        raise ParseError(f"iperf3 did not measure: {found.why or 'it does not say what arrived'}")
    return float(values[0])


CANARIES: Mapping[str, Canary] = {
    one.name: one
    for one in (
        Canary("cpu", "CPU loop", "turns/s", True, "", parse_cpu),
        Canary("disk", "disk (random reads of 4 KiB)", "I/O requests/s", True, "fio", parse_disk),
        Canary("network", "network to the SUT", "bits/s", True, "iperf3", parse_network),
    )
}
