"""The trace of a run in a real OpenTelemetry Collector, built here from its own modules, and what it writes of it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import events as e
from benchhub.embedded import PROJECT_DIR
from benchhub.processes import end, spawn, wait_until
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, RunTrace
from experiments.tasks import send_trace
from tests import needs
from tests.agents.run_lab import free_port
from tests.experiments.finished import finish_next, whole_run

SOURCE = PROJECT_DIR / "tests/collector"
CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%(port)d"}}}}
exporters: {file: {path: "%(file)s", flush_interval: 20ms}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [file]}}
"""


@pytest.fixture
def collector(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """The file that it writes, an export on each line."""
    needs.require_program("go")
    program, file, port = tmp_path / "collector", tmp_path / "spans.json", free_port()
    subprocess.run(["go", "build", "-o", program, "."], cwd=SOURCE, check=True)
    (tmp_path / "config.yaml").write_text(CONFIG % {"port": port, "file": file})
    log = tmp_path / "collector.log"
    process = spawn((str(program), "--config", f"file:{tmp_path}/config.yaml"), log=log, directory=tmp_path)
    try:
        assert wait_until(lambda: process.poll() is not None or listens(port), seconds=60)
        assert process.poll() is None, log.read_text()[-2000:]
        settings.OTEL_EXPORTER_OTLP_ENDPOINT = f"http://127.0.0.1:{port}"
        yield file
    finally:
        end(process, signal.SIGTERM, patience_s=30)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def spans(file: Path) -> list[dict[str, Any]]:
    exports = [json.loads(line) for line in file.read_text().splitlines()]
    scopes = [scope for export in exports for resource in export["resourceSpans"] for scope in resource["scopeSpans"]]
    return [span for scope in scopes for span in scope["spans"]]


def said(span: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


@pytest.mark.generators
@pytest.mark.slow
def test_a_real_collector_takes_whole_and_failed_runs_span_for_span(
    collector: Path, admin: Member, stock: dict[str, Any]
) -> None:
    begun = whole_run()
    failed = [*begun[: begun.index(e.PhaseStarted("measure")) + 1], e.Failed("measure", "wrk: connection refused")]
    for events in (begun, [*failed, e.Restored({})]):
        launch_run(admin, Choice(**stock))
        send_trace(finish_next(events).pk)
    assert RunTrace.objects.filter(sent_at__isnull=False, next_at=None, problem="").count() == 2

    assert wait_until(lambda: collector.read_text().count("\n") == 2, seconds=60)
    taken = spans(collector)
    whole, broken = (span for span in taken if not span.get("parentSpanId"))
    assert (whole["name"], whole["kind"], whole["status"]) == ("RUN tomcat · home page", 2, {"code": 1})
    assert broken["status"] == {"code": 2, "message": "wrk: connection refused"}
    results = [said(span)["cicd.pipeline.result"] for span in (whole, broken)]
    assert results == ["success", "failure"]
    assert [mark["name"] for mark in whole["events"]] == ["step applied", "load started", "step undone", "restored"]
    tasks = [span for span in taken if span.get("parentSpanId") == whole["spanId"]]
    assert [task["name"] for task in tasks] == list(e.PHASES)
    assert {task["traceId"] for task in tasks} == {whole["traceId"]} != {broken["traceId"]}
    assert all(int(task["startTimeUnixNano"]) <= int(task["endTimeUnixNano"]) for task in tasks)
