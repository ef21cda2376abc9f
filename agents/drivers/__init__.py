"""The load tools. A new one is a folder here, its name in `AnyDriver`, cases, and a row in docs/drivers.md."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.base.model import kinds_of
from agents.drivers.ab.driver import Ab
from agents.drivers.autocannon.driver import Autocannon
from agents.drivers.base.driver import Driver
from agents.drivers.command.driver import CommandDriver
from agents.drivers.fio.driver import Fio
from agents.drivers.gatling.driver import Gatling
from agents.drivers.h2load.driver import H2load
from agents.drivers.hey.driver import Hey
from agents.drivers.hyperfoil.driver import Hyperfoil
from agents.drivers.iperf3.driver import Iperf3
from agents.drivers.jmeter.driver import Jmeter
from agents.drivers.k6.driver import K6
from agents.drivers.locust.driver import Locust
from agents.drivers.memtier.driver import Memtier
from agents.drivers.oha.driver import Oha
from agents.drivers.pgbench.driver import Pgbench
from agents.drivers.redis_benchmark.driver import RedisBenchmark
from agents.drivers.siege.driver import Siege
from agents.drivers.sysbench.driver import Sysbench
from agents.drivers.vegeta.driver import Vegeta
from agents.drivers.wrk.wrk import Wrk
from agents.drivers.wrk.wrk2 import Wrk2
from agents.drivers.ycsb.driver import Ycsb

AnyDriver = Annotated[
    Ab
    | Autocannon
    | CommandDriver
    | Fio
    | Gatling
    | H2load
    | Hey
    | Hyperfoil
    | Iperf3
    | Jmeter
    | K6
    | Locust
    | Memtier
    | Oha
    | Pgbench
    | RedisBenchmark
    | Siege
    | Sysbench
    | Vegeta
    | Wrk
    | Wrk2
    | Ycsb,
    Field(discriminator="kind"),
]

DRIVERS: dict[str, type[Driver]] = kinds_of(AnyDriver)
