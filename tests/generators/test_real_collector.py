"""The trace of a run in a real OpenTelemetry Collector, built here from its own modules, and what it writes of it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from agents import events as e
from benchhub.embedded import PROJECT_DIR
from benchhub.processes import end, spawn, wait_until
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, RunTrace
from experiments.tasks import send_trace
from tests import needs
from tests.agents.run_lab import free_port, port_is_free
from tests.experiments.finished import finish_next, whole_run
from tests.experiments.telling.test_traces import said, spans_in

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
        assert wait_until(lambda: process.poll() is not None or not port_is_free(port), seconds=60)
        assert process.poll() is None, log.read_text()[-2000:]
        settings.OTEL_EXPORTER_OTLP_ENDPOINT = f"http://127.0.0.1:{port}"
        yield file
    finally:
        end(process, signal.SIGTERM, patience_s=30)


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
    (whole, *tasks), (broken, *_) = (spans_in(export) for export in collector.read_bytes().splitlines())
    assert (whole.name, whole.kind) == ("RUN tomcat · home page", Span.SPAN_KIND_SERVER)
    assert (whole.status.code, broken.status.code) == (Status.STATUS_CODE_OK, Status.STATUS_CODE_ERROR)
    assert broken.status.message == "wrk: connection refused"
    assert [said(span)["cicd.pipeline.result"] for span in (whole, broken)] == ["success", "failure"]
    assert [mark.name for mark in whole.events] == ["step applied", "load started", "step undone", "restored"]
    assert [task.name for task in tasks] == list(e.PHASES)
    assert {task.parent_span_id for task in tasks} == {whole.span_id}
    assert {task.trace_id for task in tasks} == {whole.trace_id} != {broken.trace_id}
    assert all(task.start_time_unix_nano <= task.end_time_unix_nano for task in tasks)
