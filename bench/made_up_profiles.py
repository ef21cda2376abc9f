"""Made-up profiles of a Java server, as collapsed stacks: what pages show, and as many distinct stacks as are asked."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.random import Generator

from agents.profiles.base.profile import Profile
from agents.profiles.base.slices import Slices, sliced

SAMPLES = 6000
_TOP = "java/lang/Thread.run;org/apache/tomcat/util/net/SocketProcessorBase.run"
_CONNECTOR = f"{_TOP};org/apache/coyote/http11/Http11Processor.service;org/apache/catalina/core/StandardPipeline.invoke"
_SHOP = f"{_CONNECTOR};com/acme/shop/CheckoutServlet.doGet"
_SHARES: Mapping[str, float] = {
    f"{_TOP};org/apache/coyote/http11/Http11InputBuffer.parseRequestLine": 0.06,
    f"{_TOP};sun/nio/ch/SocketChannelImpl.read;read;do_syscall_64_[k];tcp_recvmsg_[k]": 0.11,
    f"{_CONNECTOR};org/apache/catalina/mapper/Mapper.map": 0.05,
    f"{_SHOP};com/acme/shop/Cart.total;java/math/BigDecimal.add": 0.08,
    f"{_SHOP};com/acme/json/Parser.parse;com/acme/json/Parser.number": 0.14,
    f"{_SHOP};com/acme/json/Parser.parse;com/acme/json/Parser.text;java/lang/String.<init>": 0.12,
    f"{_SHOP};com/acme/json/Writer.write;java/lang/StringBuilder.append": 0.13,
    f"{_SHOP};java/util/HashMap.get;java/lang/String.hashCode": 0.04,
    f"{_SHOP};com/acme/shop/Prices$$Lambda$14/0x0000000800066840.apply": 0.05,
    f"{_TOP};sun/nio/ch/SocketChannelImpl.write;write;do_syscall_64_[k];tcp_sendmsg_[k]": 0.15,
    "start_thread;GCTaskThread::run;G1ParEvacuateFollowersClosure::do_void": 0.06,
    "[not_walkable_Java]": 0.01,
}
_CHANGES: Mapping[str, float] = {
    f"{_SHOP};com/acme/json/Parser.parse;com/acme/json/Parser.number": -0.14,
    f"{_SHOP};com/acme/json/Parser.parse;com/acme/json/Decimal.read;java/math/BigDecimal.<init>": 0.21,
    f"{_SHOP};com/acme/json/Writer.write;java/lang/StringBuilder.append": -0.03,
}
"""Of the CPU time of one request before: one function vanished, a costlier one came, one became cheaper."""


def cost_ratio(*, changed: bool) -> float:
    """The CPU time of a request, in units of what it was before the change."""
    return 1.0 + (sum(_CHANGES.values()) if changed else 0.0)


def made_up_profile(source: Generator, *, changed: bool = False, samples: int = SAMPLES) -> bytes:
    """One run's profile; `changed` is the program after the change. Counts differ from run to run."""
    shares = {
        stack: _SHARES.get(stack, 0.0) + (_CHANGES.get(stack, 0.0) if changed else 0.0)
        for stack in dict.fromkeys((*_SHARES, *_CHANGES))
    }
    lines = []
    for number, (stack, share) in enumerate(shares.items()):
        for thread in (1, 2):
            count = source.poisson(max(0.0, share) * samples / 2)
            if count:
                lines.append(f"[http-nio-8080-exec-{thread} tid={7000 + number % 2 + thread}];{stack} {count}\n")
    return "".join(lines).encode()


def many_stacks(source: Generator, stacks: int, depth: int = 30, grows: int = 12, functions: int = 4000) -> bytes:
    """A profile of that many distinct stacks of up to twice `depth` frames, compressed.

    Each has some frames from the root on of the one before, and up to `grows` of its own.
    """
    return gzip.compress("".join(_many(source, stacks, depth, grows, functions)).encode(), 6)


def made_up_slices(source: Generator, profile: Profile, window_s: tuple[float, float] = (5.0, 65.0)) -> Slices:
    """When its samples were taken, as if: most in the middle of the window, each stack around a time of its own."""
    of_stack = np.repeat(np.arange(len(profile), dtype=np.int32), profile.weights.astype(np.int64))
    begin_s, end_s = window_s
    around = source.normal(0.5, 0.25, len(profile))[of_stack] + source.normal(0, 0.05, len(of_stack))
    at_s = begin_s + around % 1 * (end_s - begin_s)
    found = sliced(of_stack, at_s, at_s, np.ones(len(of_stack)))
    if found is None:
        raise ValueError("the profile has one sample, which has no course in time")
    return found


def _many(source: Generator, stacks: int, depth: int, grows: int, functions: int) -> Iterator[str]:
    names = [f"com/acme/p{number % 61}/Class{number % 701}.method{number}" for number in range(functions)]
    before: list[str] = []
    seen: set[str] = set()
    while len(seen) < stacks:
        kept = int(len(before) * source.random() ** 0.3)
        grown = min(int(source.integers(1, grows + 1)), max(1, 2 * depth - kept))
        before = [*before[:kept], *(names[at] for at in source.integers(0, functions, grown))]
        stack = ";".join(before)
        if stack not in seen:
            seen.add(stack)
            yield f"{stack} {int(source.pareto(1.2)) + 1}\n"
