"""/metrics: read from PostgreSQL at each scrape, so that any web process tells the same truth."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterator

from django.conf import settings
from django.db import Error, connection
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from benchhub import requests
from experiments.keeping.operating import operations
from experiments.keeping.operating.bounded_look import BoundedLook, NoAnswer
from experiments.keeping.operating.canaries import QueueState, queue_states
from experiments.keeping.operating.sites import SiteState, site_states
from experiments.keeping.operating.watched import watched_queues
from experiments.models import Run, Tally
from experiments.registry.database_clock import database_now
from experiments.registry.replica import ReplicaState, replica_state
from experiments.registry.workers.tallies import PHASE_BUCKETS_S

DATABASE_S = 10.0

COUNTERS: tuple[tuple[str, str, str, list[str]], ...] = (
    ("runs_finished", "Runs that a worker ended, by outcome.", "outcome", list(filter(None, Run.Outcome.values))),
    ("restores", "Runs after which hosts were put back: verified, or dirty.", "result", ["verified", "dirty"]),
    ("adoptions", "Runs that a worker took over from another.", "", [""]),
    ("retries", "Finished runs that repeated a failed one.", "", [""]),
    ("hints_dropped", "Messages to workers that the broker did not take in time.", "", [""]),
)
"""Tally, help, name of the label, and its values: each is there from the start, or its first increase is not seen."""

_FORWARDED = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via")


def metrics(request: HttpRequest) -> HttpResponse:
    """The page for Prometheus; 403 for who may not see it, 503 when the database does not answer."""
    if not may_see(request):
        return _text(
            "These figures are for who sends the token of BENCHHUB_METRICS_TOKEN as `Authorization: Bearer ...`. "
            "Where that is not set, they are for this machine alone, asked without a proxy.",
            403,
        )
    try:
        page = _bounded()
    except (Error, NoAnswer) as error:
        return _text(f"The database does not answer: {str(error).strip()}", 503)
    return HttpResponse(page, content_type=CONTENT_TYPE_LATEST)


def may_see(request: HttpRequest) -> bool:
    """With the token, when there is one; without, a process of this machine that is no proxy for somebody else."""
    token = settings.BENCHHUB_METRICS_TOKEN
    if token:
        given = request.headers.get("Authorization", "")
        return constant_time_compare(given, f"Bearer {token}")
    if settings.ALLAUTH_TRUSTED_PROXY_COUNT or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


class OperationsCollector(Collector):
    """Every figure of the installation, by a few small queries."""

    def collect(self) -> Iterator[Metric]:
        now = database_now()
        yield from _runs(now_s=now.timestamp())
        lease_ages = [state.lease_age_s for state in operations.live_states(now) if state.lease_age_s is not None]
        yield _gauge(
            "benchhub_lease_age_seconds",
            "Since the last sign of life of the quietest worker that holds a run; 0 when none does.",
            max(lease_ages, default=0.0),
        )
        hosts = GaugeMetricFamily("benchhub_hosts", "Hosts by state.", labels=["state"])
        for state, number in operations.hosts_by_state().items():
            hosts.add_metric([state], number)
        yield hosts
        yield from _workers(operations.workers(now))
        yield from _sites(site_states(now))
        yield from _queues(queue_states(watched_queues(), now), now_s=now.timestamp())
        database = operations.database()
        yield _gauge("benchhub_database_bytes", "Size of the database.", database.size_bytes)
        yield _gauge("benchhub_database_connections", "Connections to the database server.", database.used)
        yield _gauge("benchhub_database_connections_max", "Connections that the server allows.", database.most)
        yield from _replica(replica_state())
        yield from _tallies()


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _replica(state: ReplicaState | None) -> Iterator[Metric]:
    """Nothing where there is none."""
    if state is None:
        return
    yield _gauge("benchhub_replica_read", "1 while histories and whole files are read there.", float(not state.trouble))
    if state.behind_bytes is not None:
        yield _gauge("benchhub_replica_behind_bytes", "What it lacks of PostgreSQL's log.", state.behind_bytes)


def _runs(now_s: float) -> Iterator[Metric]:
    queued = GaugeMetricFamily("benchhub_runs_queued", "Waiting runs.", labels=["team", "priority"])
    waiting = Run.objects.filter(state=Run.State.QUEUED).values_list("team__slug", "priority")
    for team, priority, number in waiting.annotate(runs=Count("pk")).order_by("team__slug", "priority"):
        queued.add_metric([team, Run.Priority(priority).label.lower()], number)
    yield queued
    oldest = operations.oldest_waiting()
    waits_s = now_s - oldest.queued_at.timestamp() if oldest else 0.0
    yield _gauge("benchhub_oldest_waiting_seconds", "How long the oldest waiting run has waited.", waits_s)
    active = GaugeMetricFamily("benchhub_runs_active", "Live runs by state.", labels=["state"])
    by_state = dict(Run.objects.filter(state__in=Run.ACTIVE).values_list("state").annotate(runs=Count("pk")))
    for state in Run.ACTIVE:
        active.add_metric([state], by_state.get(state, 0))
    yield active


def _workers(workers: list[operations.WorkerState]) -> Iterator[Metric]:
    alive = GaugeMetricFamily("benchhub_workers", "Workers that are there, by queue.", labels=["queue"])
    for queue in watched_queues():
        alive.add_metric([queue], sum(queue in one.worker.queues and not one.silent for one in workers))
    yield alive
    seen = GaugeMetricFamily("benchhub_worker_seen_timestamp_seconds", "Last sign of life.", labels=["worker"])
    for one in workers:
        seen.add_metric([f"{one.worker.name} {one.worker.process}"], one.worker.seen_at.timestamp())
    yield seen
    ahead = GaugeMetricFamily("benchhub_clock_ahead_seconds", "Clock against the database's.", labels=["worker"])
    for one in workers:
        ahead.add_metric([f"{one.worker.name} {one.worker.process}"], one.worker.clock_ahead_s)
    yield ahead


def _sites(states: list[SiteState]) -> Iterator[Metric]:
    workers = GaugeMetricFamily("benchhub_site_workers", "Workers that execute runs, by site.", labels=["site"])
    live = GaugeMetricFamily("benchhub_site_runs_active", "Live runs by site.", labels=["site"])
    most = GaugeMetricFamily("benchhub_site_runs_active_max", "Live runs that a site may have.", labels=["site"])
    waiting = GaugeMetricFamily("benchhub_site_runs_queued", "Waiting runs by site.", labels=["site"])
    for state in states:
        for family, value in ((workers, state.workers), (live, state.live), (most, state.most_live)):
            family.add_metric([state.label], value)
        waiting.add_metric([state.label], state.waiting)
    yield from (workers, live, most, waiting)


def _queues(states: list[QueueState], now_s: float) -> Iterator[Metric]:
    delay = GaugeMetricFamily("benchhub_canary_delay_seconds", "How long the last canary waited.", labels=["queue"])
    age = GaugeMetricFamily("benchhub_canary_age_seconds", "Since a canary was taken last.", labels=["queue"])
    stuck = GaugeMetricFamily("benchhub_queue_stuck", "1: nobody takes messages from the queue.", labels=["queue"])
    for state in states:
        if state.delay_s is not None:
            delay.add_metric([state.name], state.delay_s)
        if state.age_s is not None:
            age.add_metric([state.name], state.age_s)
        stuck.add_metric([state.name], state.level == "stuck")
    yield from (delay, age, stuck)
    sent = [state.sent_at.timestamp() for state in states if state.sent_at]
    if sent:
        yield _gauge("benchhub_beat_age_seconds", "Since beat sent a canary last.", now_s - max(sent))


def _tallies() -> Iterator[Metric]:
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for name, label, value in Tally.objects.order_by("name", "label").values_list("name", "label", "value"):
        values[name][label] = value
    for name, text, label_name, labels in COUNTERS:
        counter = CounterMetricFamily(f"benchhub_{name}", text, labels=[label_name] if label_name else [])
        for label in labels:
            counter.add_metric([label] if label_name else [], values[name].get(label, 0.0))
        yield counter
    phases = HistogramMetricFamily("benchhub_phase_seconds", "How long phases of runs took.", labels=["phase"])
    for phase, number in values["phase_count"].items():
        limits = [f"{limit_s:g}" for limit_s in PHASE_BUCKETS_S]
        buckets = [(limit, values["phase_bucket"].get(f"{phase} {limit}", 0.0)) for limit in limits]
        phases.add_metric([phase], [*buckets, ("+Inf", number)], values["phase_sum_s"].get(phase, 0.0))
    yield phases


_registry = CollectorRegistry(auto_describe=False)
_registry.register(OperationsCollector())


def _page() -> bytes:
    try:
        return generate_latest(_registry) + generate_latest(requests.counts())
    finally:
        connection.close()


_bounded = BoundedLook(_page, limit_s=DATABASE_S, kept_s=0.0)


def _text(sentence: str, status: int) -> HttpResponse:
    return HttpResponse(sentence + "\n", status=status, content_type="text/plain; charset=utf-8")
