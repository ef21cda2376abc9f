"""A real Prometheus of a test's own on the loopback, which scrapes an exporter of the test ten times a second."""

from __future__ import annotations

import json
import math
import signal
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily

from benchhub.processes import end, spawn, wait_until
from tests.agents.run_lab import free_port

READY_S = 120.0
INSTANCE = "sut-1:9100"
_CONFIGURATION = """
global: {{scrape_interval: 100ms, scrape_timeout: 100ms}}
scrape_configs:
  - job_name: shop
    static_configs: [{{targets: ["127.0.0.1:{port}"], labels: {{instance: "{instance}"}}}}]
"""


@dataclass(eq=False)
class Exporter:
    """`shop_scrapes` counts how often it was asked. It is hidden, and not a number, during the named counts."""

    scrapes: int = 0
    hidden: range = range(0)
    nan: range = range(0)
    per_disk: dict[str, float] = field(default_factory=dict)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        self.scrapes += 1
        if self.scrapes not in self.hidden:
            value = math.nan if self.scrapes in self.nan else float(self.scrapes)
            yield GaugeMetricFamily("shop_scrapes", "How often it was asked", value=value)
        disks = GaugeMetricFamily("shop_disk_busy_ratio", "Of each disk", labels=["device"])
        for device, busy_ratio in self.per_disk.items():
            disks.add_metric([device], busy_ratio)
        yield disks


@dataclass(frozen=True)
class Server:
    """A server that runs, and what it scrapes."""

    url: str
    exporter: Exporter

    def ask(self, operation: str, **parameters: object) -> Any:
        """What its API answers, read without any of our code."""
        asked = f"{self.url}/api/v1/{operation}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.loads(answer.read())["data"]["result"]

    def value(self, promql: str, at_unix_s: float | None = None) -> float | None:
        """Of the only series at this moment; None where it has none."""
        times = {} if at_unix_s is None else {"time": f"{at_unix_s:.3f}"}
        found = self.ask("query", query=promql, **times)
        return float(found[0]["value"][1]) if found else None

    def until(self, holds: Callable[[], bool]) -> None:
        assert wait_until(holds, seconds=READY_S), "Prometheus did not see that in time"


@contextmanager
def running_prometheus(folder: Path, exporter: Exporter) -> Iterator[Server]:
    """Yields once the first values are there."""
    registry = CollectorRegistry()
    registry.register(exporter)
    scraped, thread = start_http_server(0, "127.0.0.1", registry)
    port = free_port()
    configuration = folder / "prometheus.yml"
    configuration.write_text(_CONFIGURATION.format(port=scraped.server_address[1], instance=INSTANCE))
    arguments = (f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'data'}")
    process = spawn(
        ("prometheus", *arguments, f"--web.listen-address=127.0.0.1:{port}"),
        log=folder / "prometheus.log",
        directory=folder,
    )
    server = Server(f"http://127.0.0.1:{port}", exporter)
    try:
        server.until(lambda: process.poll() is not None or _has_values(server))
        assert process.poll() is None, (folder / "prometheus.log").read_text()[-2000:]
        yield server
    finally:
        end(process, signal.SIGTERM, patience_s=30)
        scraped.shutdown()
        thread.join()


def _has_values(server: Server) -> bool:
    try:
        return server.value("shop_scrapes") is not None
    except OSError:
        return False
