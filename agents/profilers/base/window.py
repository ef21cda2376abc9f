"""The job of a profiler on the host: it begins, works for its window, ends, and says what CPU the server used in it.

One job, so that it goes on when the connection or the worker does not, and is found again by whoever comes next.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.profilers.base.profiler import Profiler

TICKS_PER_S = 100
"""The kernel shows CPU time in ticks of 10 ms on every platform that servers run on (USER_HZ)."""
MIN_WINDOW_S = 1.0
TOO_SHORT_STATUS = 3

# Hundredths of a second since the host's start, as the kernel tells them. A process that ended since has its time in
# that of the one which waited for it, so the sum over those alive loses nothing.
_HEAD = """
folder=$1 out=$1/$2 until=$3
shift 3
umask 077
pids=$*
look() { read -r up rest </proc/uptime; up=${up%.*}${up#*.}; }
until_then='
  read -r up rest </proc/uptime
  left=$(($1 - ${up%.*}${up#*.}))
  [ "$left" -le 0 ] || exec sleep "$((left / 100)).$(printf %02d $((left % 100)))"
'
tree() {
  for one; do
    echo "$one"
    for kin in /proc/$one/task/[0-9]*/children; do
      forked=
      read -r forked 2>/dev/null <"$kin"
      [ -z "$forked" ] || tree $forked
    done
  done
}
usage() {
  look
  ticks=0
  for one in $(tree $pids); do
    stat=
    read -r stat 2>/dev/null <"/proc/$one/stat" || continue
    set -- ${stat##*) }
    ticks=$((ticks + ${12} + ${13} + ${14} + ${15}))
  done
  echo "usage $up $ticks"
}
list=
for one in $(tree $pids); do list=$list,$one; done
list=${list#,}
"""

_MIDDLE = """
look
left=$((until - up))
if [ "$left" -lt 100 ]; then seconds=0; else seconds=$((left / 100)).$(printf %02d $((left % 100))); fi
echo "engine $engine"
"""

_USAGE = re.compile(r"^usage (\d{1,15}) (\d{1,18})$", re.MULTILINE)
_ENGINE = re.compile(r"^engine (\S.{0,59})$", re.MULTILINE)


@dataclass(frozen=True)
class Window:
    """What the job said: `begin_s` and `end_s` are of the host's clock since its start, `cpu_time_s` is that of all
    processes of the server in between, in seconds; `engine` is what really sampled."""

    engine: str
    begin_s: float
    end_s: float
    cpu_time_s: float


def window_command(
    profiler: Profiler, event: str, folder: str, name: str, *, until_s: float, pids: Sequence[int]
) -> Command:
    """The whole job, which ends at `until_s` of the host's clock (seconds since its start) and exits with 3 when there
    is no second left by then. `folder` is absolute, its files begin with `name`."""
    text = "\n".join(
        (
            _HEAD,
            profiler.begin(event),
            _MIDDLE,
            f'if [ "$seconds" = 0 ]; then {{\n{profiler.end(event)}\n}} >&2; exit {TOO_SHORT_STATUS}; fi',
            "usage",
            profiler.during(event),
            'sh -c "$until_then" sh "$until"',
            "usage",
            profiler.end(event),
        )
    )
    return script(text, folder, name, str(round(until_s * 100)), *map(str, pids))


def parse_window(text: str) -> Window:
    """What the job of `window_command` printed. ParseError when it did not come to its end."""
    engine, usage = _ENGINE.search(text), _USAGE.findall(text)
    if engine is None or len(usage) != 2:
        raise ParseError("the profiler's job did not say when it began and ended")
    (begin, before), (end, after) = ([int(one) for one in pair] for pair in usage)
    return Window(engine[1], begin / 100, end / 100, (after - before) / TICKS_PER_S)


def after_command(profiler: Profiler, event: str, folder: str, name: str) -> Command | None:
    """The job that makes the profiler's result when the load has ended; None where there is nothing to make."""
    if not (text := profiler.after(event)):
        return None
    return script(f"folder=$1 out=$1/$2\numask 077\n{text}", folder, name)
