"""Traces of runs, read by the protocol's own definition: the right spans, the same ones each time, in nobody's way."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from agents import events as e
from benchhub.environment import envheaders, envurl
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, Run, RunTrace
from experiments.tasks import send_trace
from experiments.telling.observing import tracing
from tests.experiments.finished import finish_next, whole_run
from tests.experiments.telling.receiver import Receiver, running_receiver


@pytest.fixture
def collector(settings: Any) -> Iterator[Receiver]:
    with running_receiver() as one:
        one.answer = b"{}"
        settings.OTEL_EXPORTER_OTLP_ENDPOINT = f"http://127.0.0.1:{one.port}/otlp/"
        settings.OTEL_EXPORTER_OTLP_HEADERS = {"Authorization": "Bearer only-the-collector-knows-it"}
        yield one


@pytest.fixture
def launched(admin: Member, stock: dict[str, Any]) -> Run:
    return launch_run(admin, Choice(**stock), labels={"commit": "4f2c9d1"})


Break = Callable[[Any, Path], None]


def certificate(content: str | None) -> Break:
    def make(settings: Any, place: Path) -> None:
        settings.OTEL_EXPORTER_OTLP_CERTIFICATE = place / "ca.pem"
        if content is not None:
            (place / "ca.pem").write_text(content)

    return make


def odd_header(settings: Any, _place: Path) -> None:
    settings.OTEL_EXPORTER_OTLP_HEADERS = {"x-scope": "\u2013"}


def run_without_start(_settings: Any, _place: Path) -> None:
    Run.objects.update(started_at=None)


def spans_in(body: bytes) -> list[Span]:
    """As the protocol's own library reads them; its JSON has ids in hex, where that of protobuf has base64."""

    def decoded(value: Any) -> Any:
        if isinstance(value, list):
            return [decoded(one) for one in value]
        if not isinstance(value, dict):
            return value
        ids = ("traceId", "spanId", "parentSpanId")
        return {
            key: base64.b64encode(bytes.fromhex(one)).decode() if key in ids else decoded(one)
            for key, one in value.items()
        }

    request = Parse(json.dumps(decoded(json.loads(body))), ExportTraceServiceRequest())
    assert {a.key for a in request.resource_spans[0].resource.attributes} >= {"service.name", "service.version"}
    return list(request.resource_spans[0].scope_spans[0].spans)


def said(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_run_is_a_pipeline_run_and_its_phases_are_tasks(collector: Receiver, launched: Run) -> None:
    run = finish_next()
    assert collector.bodies == []  # nothing is sent where the run ends
    send_trace(run.pk)
    assert collector.paths == ["/otlp/v1/traces"]
    assert collector.headers[0]["Authorization"] == "Bearer only-the-collector-knows-it"
    whole, *tasks = spans_in(collector.bodies[0])
    assert (whole.name, whole.kind, whole.status.code) == (
        "RUN tomcat · home page",
        Span.SPAN_KIND_SERVER,
        Status.STATUS_CODE_OK,
    )
    told = said(whole)
    assert told["cicd.pipeline.name"] == "tomcat · home page"
    assert told["cicd.pipeline.run.id"] == str(run.number)
    assert told["cicd.pipeline.run.url.full"].endswith(f"/t/perf/runs/{run.number}/")
    assert told["cicd.pipeline.result"] == "success"
    assert told["cicd.worker.id"] == told["cicd.worker.name"] == "test"
    assert told["benchhub.label.commit"] == "4f2c9d1"
    assert told["benchhub.throughput_rps"] == 1000.0
    assert [one.string_value for one in told["benchhub.hosts"].values] == ["sut-1", "driver-1"]
    assert run.started_at is not None
    assert run.finished_at is not None
    assert abs(whole.start_time_unix_nano / 1e9 - run.started_at.timestamp()) < 1e-5
    assert abs(whole.end_time_unix_nano / 1e9 - run.finished_at.timestamp()) < 1e-5
    assert [task.name for task in tasks] == list(e.PHASES)
    assert {task.parent_span_id for task in tasks} == {whole.span_id}
    assert {task.trace_id for task in tasks} == {whole.trace_id}
    assert {said(task)["cicd.pipeline.task.run.result"] for task in tasks} == {"success"}
    assert all(task.start_time_unix_nano <= task.end_time_unix_nano for task in tasks)
    assert [mark.name for mark in whole.events] == ["step applied", "load started", "step undone", "restored"]


def test_a_phase_ends_when_it_ended_however_late_that_was_told(collector: Receiver, launched: Run) -> None:
    begun = [replace(one, at_unix_s=1e9) if isinstance(one, e.PhaseStarted) else one for one in whole_run()]
    run = finish_next(begun)
    send_trace(run.pk)
    _, *tasks = spans_in(collector.bodies[0])
    assert {(task.start_time_unix_nano, task.end_time_unix_nano) for task in tasks} == {(10**18, 10**18 + 5 * 10**8)}


def test_a_phase_that_another_worker_did_again_ends_with_the_last_time(collector: Receiver, launched: Run) -> None:
    def again(phase: Any, began_s: int, duration_s: int) -> list[e.AnyEvent]:
        return [e.PhaseStarted(phase, 1e9 + began_s), e.PhaseFinished(phase, duration_s)]

    rest = [one for one in whole_run() if getattr(one, "phase", "") not in ("restore", "verify")]
    restored = rest.index(e.Restored({}))
    left = [*again("restore", 0, 10), e.PhaseStarted("verify", 1e9 + 10)]  # by the death of their worker
    verified = again("verify", 120, 115)  # it had not come to its end: its duration is that since its first start
    run = finish_next([*rest[:restored], *left, *again("restore", 100, 20), *verified, *rest[restored:]])
    send_trace(run.pk)
    spans = {span.name: span for span in spans_in(collector.bodies[0])}
    for phase, began_s, ended_s in (("restore", 0, 120), ("verify", 10, 125)):
        assert spans[phase].start_time_unix_nano == (10**9 + began_s) * 10**9
        assert spans[phase].end_time_unix_nano == (10**9 + ended_s) * 10**9


def test_a_failed_run_says_in_which_phase_and_why(collector: Receiver, launched: Run) -> None:
    begun = whole_run()
    until = begun.index(e.PhaseStarted("measure"))
    run = finish_next([*begun[: until + 1], e.Failed("measure", "wrk: connection refused"), e.Restored({})])
    send_trace(run.pk)
    whole, *tasks = spans_in(collector.bodies[0])
    assert (whole.status.code, whole.status.message) == (Status.STATUS_CODE_ERROR, "wrk: connection refused")
    assert said(whole)["cicd.pipeline.result"] == "failure"
    measured = tasks[-1]
    assert (measured.name, measured.status.message) == ("measure", "wrk: connection refused")
    assert said(measured)["cicd.pipeline.task.run.result"] == "failure"
    assert said(tasks[0])["cicd.pipeline.task.run.result"] == "success"


def test_a_repeated_message_has_the_same_spans_and_another_run_others(
    collector: Receiver, admin: Member, stock: dict[str, Any]
) -> None:
    for _ in range(2):
        launch_run(admin, Choice(**stock))
        run = finish_next()
        send_trace(run.pk)
    assert RunTrace.objects.filter(sent_at__isnull=False, next_at=None).count() == 2
    RunTrace.objects.filter(pk=run.pk).update(next_at=timezone.now())
    send_trace(run.pk)
    first, second, again = ([bytes(span.span_id) for span in spans_in(body)] for body in collector.bodies)
    assert collector.bodies[1] == collector.bodies[2]
    assert second == again
    assert not set(first) & set(second)
    assert len(set(first)) == len(first)


def test_a_collector_that_is_away_is_asked_again_later_and_then_no_more(collector: Receiver, launched: Run) -> None:
    run = finish_next()
    collector.status, collector.answer = 503, b"full"
    before = timezone.now()
    send_trace(run.pk)
    noted = RunTrace.objects.get()
    assert (noted.tries, noted.problem) == (1, "It answered 503: full")
    assert noted.next_at is not None
    assert before + tracing.PAUSES[0] <= noted.next_at <= timezone.now() + tracing.PAUSES[0]
    assert tracing.due() == []
    send_trace(run.pk)  # a hint that comes early changes nothing
    assert len(collector.bodies) == 1
    for _ in tracing.PAUSES:
        RunTrace.objects.update(next_at=timezone.now() - timedelta(seconds=1))
        assert tracing.due() == [run.pk]
        send_trace(run.pk)
    over = RunTrace.objects.get()
    assert (over.tries, over.next_at, over.sent_at) == (8, None, None)
    run.refresh_from_db()
    assert run.outcome == "succeeded"


@pytest.mark.parametrize(
    "status, answer, problem",
    [
        (400, b"what is that?", "It answered 400: what is that?"),
        (302, b"", "It answered 302: "),
        (200, b'{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}', "3 spans rejected: too old"),
    ],
)
def test_what_will_never_be_taken_is_given_up_at_once(
    collector: Receiver, launched: Run, status: int, answer: bytes, problem: str
) -> None:
    run = finish_next()
    collector.status, collector.answer = status, answer
    collector.location = "http://127.0.0.1:9/" if status == 302 else ""
    send_trace(run.pk)
    noted = RunTrace.objects.get()
    assert (noted.tries, noted.next_at, noted.sent_at) == (1, None, None)
    assert problem in noted.problem


def test_nobody_listens(settings: Any, launched: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = f"http://127.0.0.1:{port}"
    run = finish_next()
    send_trace(run.pk)
    noted = RunTrace.objects.get()
    assert noted.problem.startswith("It gave no answer")
    assert noted.next_at is not None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (certificate(None), "OTEL_EXPORTER_OTLP_CERTIFICATE {place}/ca.pem cannot be used: [Errno 2] No such file"),
        (certificate("no PEM"), "OTEL_EXPORTER_OTLP_CERTIFICATE {place}/ca.pem cannot be used: [X509"),
        (odd_header, "BenchHub made a mistake in sending it. The worker's log"),
        (run_without_start, "BenchHub made a mistake in sending it. The worker's log"),
    ],
)
def test_whatever_goes_wrong_is_stored_and_given_up_after_as_many_tries(
    collector: Receiver, launched: Run, settings: Any, tmp_path: Path, change: Break, problem: str
) -> None:
    run = finish_next()
    change(settings, tmp_path)
    for tries in range(1, tracing.MOST_TRIES + 1):
        RunTrace.objects.update(next_at=timezone.now())
        send_trace(run.pk)
        noted = RunTrace.objects.get()
        assert (noted.tries, noted.next_at is None) == (tries, tries == tracing.MOST_TRIES)
        assert noted.problem.startswith(problem.format(place=tmp_path))
    assert collector.bodies == []


def test_a_trace_that_kills_every_worker_is_given_up(collector: Receiver, launched: Run) -> None:
    run = finish_next()
    RunTrace.objects.update(tries=tracing.MOST_TRIES)  # the last of them died as well
    send_trace(run.pk)
    noted = RunTrace.objects.get()
    assert (noted.next_at, noted.sent_at, collector.bodies) == (None, None, [])
    assert noted.problem.startswith("No worker came to the end of sending it.")


def test_without_a_collector_nothing_is_noted(settings: Any, launched: Run) -> None:
    assert settings.OTEL_EXPORTER_OTLP_ENDPOINT == ""
    run = finish_next()
    send_trace(run.pk)
    assert not RunTrace.objects.exists()
    assert tracing.due() == []


@pytest.mark.parametrize("value", ["otel:4318", "ftp://otel", "https://", "http://otel:99999", "http://otel/?a=b"])
def test_an_endpoint_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", value)
    with pytest.raises(ImproperlyConfigured, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        envurl("OTEL_EXPORTER_OTLP_ENDPOINT")


def test_headers_are_pairs_with_values_as_in_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADERS", "Authorization=Bearer%20a%3Db, x-scope=perf")
    assert envheaders("HEADERS") == {"Authorization": "Bearer a=b", "x-scope": "perf"}
    for wrong in ("Authorization", "a b=c", "a=line%0Abreak"):
        monkeypatch.setenv("HEADERS", wrong)
        with pytest.raises(ImproperlyConfigured, match="name=value"):
            envheaders("HEADERS")
