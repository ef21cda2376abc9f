"""Channels from a real Prometheus around a run: its values on the run's clock, and gaps as gaps."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest

from agents import events as e
from agents.base.clock import RunClock
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.asking.prometheus import client, reading
from experiments.asking.prometheus.queries import ChannelQuery
from experiments.asking.prometheus.sources import Wanted, create_source, delete_source
from experiments.models import Member, PrometheusReading, PrometheusSource, Run, SampleSeries
from experiments.registry.database_clock import database_clock, database_now
from experiments.running.ending.rejudging import rejudge
from experiments.tasks import read_prometheus
from tests import needs
from tests.experiments.finished import finish_next, whole_run
from tests.prometheus_server import Exporter, Server, running_prometheus

SCRAPES = 90


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One with a value that was hidden for two seconds and not a number for two more."""
    needs.require_program("prometheus")
    exporter = Exporter(hidden=range(20, 40), nan=range(50, 70), per_disk={"sda": 0.25, "nvme0n1": 0.75})
    with running_prometheus(tmp_path_factory.mktemp("prometheus"), exporter) as one:
        one.until(lambda: (one.value("max_over_time(shop_scrapes[1m])") or 0) >= SCRAPES)
        yield one


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.BENCHHUB_WEBHOOK_HTTP = True
    settings.BENCHHUB_WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]


def source_of(admin: Member, url: str, *queries: ChannelQuery, **more: Any) -> PrometheusSource:
    return create_source(admin, Wanted(more.pop("name", "prod"), url, queries, **more))


def measured_run(admin: Member, stock: Mapping[str, Any], began_unix_s: float, duration_s: int = 4) -> Run:
    """A run that was measured at this time, ended, and whose sources may be asked at once."""
    launch_run(admin, Choice(**stock))
    happened: list[e.AnyEvent] = []
    for one in whole_run():
        if isinstance(one, e.LoadStarted):
            one = replace(one, at_unix_s=began_unix_s, duration_s=duration_s)
        elif isinstance(one, e.Samples):
            one = replace(one, at_unix_s=one.at_unix_s - 1000.0 + began_unix_s)
        happened.append(one)
    run = finish_next(happened)
    PrometheusReading.objects.filter(run=run).update(next_at=database_now())
    return run


def channels_of(run: Run) -> dict[tuple[str, str], SampleSeries]:
    found = SampleSeries.objects.filter(run=run, channel__startswith="prometheus.")
    return {(one.role, one.channel): one for one in found}


def read_all(run: Run) -> list[PrometheusReading]:
    for one in PrometheusReading.objects.filter(run=run):
        read_prometheus(one.pk)
    return reading.readings_of(run)


@pytest.mark.django_db
def test_a_channel_has_the_values_that_prometheus_has_and_its_gaps(
    server: Server, admin: Member, stock: dict[str, Any]
) -> None:
    promql = 'shop_scrapes{{instance="{host}:9100"}}'
    source_of(
        admin, server.url, ChannelQuery("scrapes", promql.replace("{{", "{").replace("}}", "}"), "scrapes", step_s=1)
    )
    first_s = server.value('min_over_time(timestamp(shop_scrapes{instance="sut-1:9100"})[1m:100ms])')
    last_s = server.value('timestamp(shop_scrapes{instance="sut-1:9100"})')
    assert first_s is not None
    assert last_s is not None
    run = measured_run(admin, stock, began_unix_s=round(first_s + 2, 3))
    (row,) = read_all(run)
    assert (row.problem, row.next_at, row.channels) == ("", None, [["sut", "prometheus.scrapes"]])
    assert row.read_at is not None
    assert row.clock_ahead_s == 0  # both are of this machine
    series = channels_of(run)["sut", "prometheus.scrapes"]
    assert series.unit == "scrapes"
    zero_s = round(first_s + 2, 3)
    asked = {at_s: server.value('shop_scrapes{instance="sut-1:9100"}', zero_s + at_s) for at_s in range(-31, 40)}
    known = {at_s: value for at_s, value in asked.items() if zero_s + at_s < last_s}
    numbers = {at_s: value for at_s, value in known.items() if value is not None and math.isfinite(value)}
    stored = dict(zip(series.at_s, series.values, strict=True))
    assert {at_s: value for at_s, value in stored.items() if zero_s + at_s < last_s} == numbers
    inner = [value for at_s, value in known.items() if at_s > min(numbers)]
    assert None in inner  # hidden
    assert any(value is not None and math.isnan(value) for value in inner)
    assert 0 not in series.values


@pytest.mark.django_db
def test_a_label_makes_a_channel_of_each_series_and_a_query_without_hosts_is_asked_once(
    server: Server, admin: Member, stock: dict[str, Any]
) -> None:
    source_of(
        admin,
        server.url,
        ChannelQuery("disk", "shop_disk_busy_ratio", "ratio", role="driver", step_s=1, label="device"),
        ChannelQuery("disks", "count(shop_disk_busy_ratio)", role="database", step_s=1),
    )
    run = measured_run(admin, stock, time.time() - 4)
    (row,) = read_all(run)
    assert row.problem == ""
    found = channels_of(run)
    assert set(found) == {("driver", "prometheus.disk.nvme0n1"), ("driver", "prometheus.disk.sda")}
    assert set(found["driver", "prometheus.disk.sda"].values) == {0.25}
    assert set(found["driver", "prometheus.disk.nvme0n1"].values) == {0.75}


@pytest.mark.django_db
def test_a_message_that_comes_twice_and_a_second_reading_store_the_same(
    server: Server, admin: Member, stock: dict[str, Any]
) -> None:
    source_of(admin, server.url, ChannelQuery("disks", "count(shop_disk_busy_ratio)", step_s=1))
    run = measured_run(admin, stock, time.time() - 4)
    (row,) = read_all(run)
    first = channels_of(run)["sut", "prometheus.disks"]
    read_prometheus(row.pk)  # it is over: nothing is asked
    row.refresh_from_db()
    assert row.tries == 1
    # As after a worker that died between the answer and the end of its lease.
    PrometheusReading.objects.filter(pk=row.pk).update(next_at=database_now(), tries=0, channels=[])
    read_prometheus(row.pk)
    (again,) = channels_of(run).values()
    shared = set(zip(first.at_s, first.values, strict=True)) & set(zip(again.at_s, again.values, strict=True))
    assert len(shared) == len(first.values)


@pytest.mark.django_db
def test_what_is_read_changes_nothing_of_a_run(server: Server, admin: Member, stock: dict[str, Any]) -> None:
    """Not even when the run is judged again, and a query says that its CPUs were idle."""
    source_of(admin, server.url, ChannelQuery("cpu", "0 * shop_disk_busy_ratio{device='sda'}", "ratio", step_s=1))
    run = measured_run(admin, stock, time.time() - 4)
    before = Run.objects.filter(pk=run.pk).values().get()
    read_all(run)
    assert channels_of(run)
    assert Run.objects.filter(pk=run.pk).values().get() == before
    judged = rejudge(run.team)
    assert (judged.judged, judged.changes) == (1, [])
    assert Run.objects.filter(pk=run.pk).values().get() == before


@pytest.mark.django_db
def test_a_query_that_is_refused_is_told_in_its_own_words_beside_those_that_work(
    server: Server, admin: Member, stock: dict[str, Any]
) -> None:
    source_of(
        admin,
        server.url,
        ChannelQuery("broken", "sum(shop_scrapes"),
        ChannelQuery("several", "shop_disk_busy_ratio"),
        ChannelQuery("nobody", "no_such_metric"),
        ChannelQuery("disks", "count(shop_disk_busy_ratio)", step_s=1),
        ChannelQuery("labelled", "shop_disk_busy_ratio", label="instance", step_s=1),
        ChannelQuery("unlabelled", "shop_disk_busy_ratio", label="zone", step_s=1),
    )
    run = measured_run(admin, stock, time.time() - 4)
    (row,) = read_all(run)
    assert set(channels_of(run)) == {("sut", "prometheus.disks")}
    for words in (
        "broken (sut): It refused the query (400): 1:17: parse error: unclosed left parenthesis\n",
        "several (sut): The query gives 2 series",
        "nobody (sut): In this time it has no series",
        "labelled (sut): Several series have the same value of the label instance.",
        "unlabelled (sut): A series has no label zone.",
    ):
        assert words in row.problem
    assert row.next_at is not None  # what has no series yet may have some later


@pytest.mark.django_db
def test_it_is_read_once_more_by_request_and_what_is_no_query_any_more_goes(
    server: Server, admin: Member, stock: dict[str, Any]
) -> None:
    source = source_of(admin, server.url, ChannelQuery("disks", "count(shop_disk_busy_ratio)", step_s=1))
    run = measured_run(admin, stock, time.time() - 4)
    read_all(run)
    source.queries = [{"channel": "disk_count", "query": "count(shop_disk_busy_ratio)", "step_s": 1}]
    source.save()
    (row,) = reading.read_again(admin, run)
    assert row.pk in reading.due()
    read_all(run)
    assert set(channels_of(run)) == {("sut", "prometheus.disk_count")}
    delete_source(admin, source)
    assert reading.readings_of(run) == []
    assert set(channels_of(run)) == {("sut", "prometheus.disk_count")}


@pytest.mark.django_db
def test_a_server_whose_clock_is_ahead_is_asked_by_its_clock_and_stored_by_the_runs(
    server: Server, admin: Member, stock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BenchHub's clock is an hour behind; the run was measured at the same moment all the same."""
    behind_s = 3600.0
    began_unix_s = time.time() - 4 - behind_s
    source_of(admin, server.url, ChannelQuery("disks", "count(shop_disk_busy_ratio)", step_s=1))
    run = measured_run(admin, stock, began_unix_s)

    def clock() -> RunClock:
        real = database_clock()
        return replace(real, since_monotonic_s=real.since_monotonic_s - behind_s)

    monkeypatch.setattr(client, "database_clock", clock)
    (row,) = read_all(run)
    assert row.problem == ""
    assert row.clock_ahead_s == pytest.approx(behind_s, abs=5)
    at_s = channels_of(run)["sut", "prometheus.disks"].at_s
    assert min(map(abs, at_s)) < 5


@pytest.mark.parametrize("quote", ['"', "'"])
def test_whatever_a_host_is_called_stays_inside_its_quotes(server: Server, quote: str) -> None:
    name = """sut "1" 'a' `b` \\ {host} ü"""
    promql = 'label_replace(vector(1), "is", "{host}", "", "")'.replace('"', quote)
    (found,) = server.ask("query", query=ChannelQuery("quoted", promql).filled({"host": name}, 15))
    assert found["metric"] == {"is": name}
