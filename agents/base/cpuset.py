"""CPU lists as Linux writes them: "0-2,5"."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

MAX_CPU = 4095


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPUs of a list such as "0-2,5", sorted and unique; "" is the empty tuple. ValueError says what is wrong."""
    cpus: set[int] = set()
    for part in filter(None, (p.strip() for p in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isascii() or not first.isdigit() or (dash and not (last.isascii() and last.isdigit())):
            raise ValueError(f"'{part}' is not a CPU or a range of CPUs; write for example 0-3,6")
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high > MAX_CPU:
            raise ValueError(f"'{part}' is not a range of CPUs between 0 and {MAX_CPU}")
        cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


def format_cpus(cpus: tuple[int, ...] | list[int]) -> str:
    """The shortest list for these CPUs: (0,1,2,5) -> "0-2,5"."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _canonical(text: str) -> str:
    return format_cpus(parse_cpus(text))


CpuSet = Annotated[str, AfterValidator(_canonical)]
"""A CPU list in its shortest form; "" means every CPU that is online."""
