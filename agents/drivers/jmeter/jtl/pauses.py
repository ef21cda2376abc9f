"""Times in which no result ended: what they mean for a file, and where it can be cut into runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from agents.drivers.jmeter.jtl.frames import pl
from agents.drivers.jmeter.jtl.tally import COUNT, STEP, TOTAL

LONGEST_PAUSE_S = 30
"""A file in which nothing ends for longer is not of one run under load; restarting a JMeter takes seconds."""
OFTEN = 20
"""A pause is longer than this many times the usual time between two results: few users with long pauses are none."""
WAITED_RATIO = 0.2
"""Results behind a pause that took this share of it were under way all the time: the server stood still."""
MAX_NAMED = 3
SPLIT_IT = "import it split (a tick in the form, `split` in the API), so that each part becomes a run"


@dataclass(frozen=True)
class Pause:
    """No result ended between two times of the wall clock, in seconds since 1970; `waited`: some were under way."""

    begin_unix_s: int
    end_unix_s: int
    waited: bool

    @property
    def length_s(self) -> int:
        return self.end_unix_s - self.begin_unix_s


def longest_usual_s(steps_apart_s: list[int]) -> int:
    """Up to how long a pause is usual in a file whose results ended in seconds so far apart."""
    ordered = sorted(steps_apart_s)
    usual = ordered[len(ordered) // 2] if ordered else 1
    return max(LONGEST_PAUSE_S, OFTEN * usual)


def pauses_of(course: pl.DataFrame) -> list[Pause]:
    """The pauses in which nothing ended, in time order; the course has a row for each second with results."""
    table = course.sort(STEP)
    steps: list[int] = table[STEP].to_list()
    mean_ms: list[float] = (table[TOTAL] / table[COUNT]).to_list()
    apart = [after - before for before, after in pairwise(steps)]
    limit_s = longest_usual_s(apart)
    return [
        Pause(before + 1, before + length_s, waited_ms >= WAITED_RATIO * length_s * 1000)
        for before, length_s, waited_ms in zip(steps, apart, mean_ms[1:], strict=False)
        if length_s > limit_s
    ]


def told(pauses: list[Pause], first_unix_s: int) -> Iterator[str]:
    """What the pauses say against the file, as reasons not to use its figures."""
    for waited in (False, True):
        some = [pause for pause in pauses if pause.waited == waited]
        if not some:
            continue
        places = ", ".join(
            f"{duration(one.length_s)} from {duration(one.begin_unix_s - first_unix_s)} on" for one in some[:MAX_NAMED]
        )
        if len(some) > MAX_NAMED:
            places += f" and {len(some) - MAX_NAMED} more times"
        yield f"no result ended for {places}: " + (
            "the server stood still, as the next results took that long"
            if waited
            else "the file holds several runs, or the driver host's clock was set forward; " + SPLIT_IT
        )


def duration(seconds: int) -> str:
    """Seconds as people say them: "4 min 10 s", "2 d 3 h"."""
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    said = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(said[:2]) or "0 s"
