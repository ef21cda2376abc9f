"""Sources of a team: what is refused, where its secret goes, and servers that answer otherwise than they should."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from experiments.asking.prometheus import client, reading
from experiments.asking.prometheus.answers import MOST_SERIES, PrometheusError, channels_in
from experiments.asking.prometheus.queries import MOST_QUERIES, ChannelQuery
from experiments.asking.prometheus.sources import (
    MOST_SOURCES,
    Wanted,
    change_source,
    create_source,
    delete_source,
    login_of,
    sources_of,
)
from experiments.models import AuditEntry, Member, PrometheusReading, PrometheusSource, Role, Run
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.hosts.key_rotation import rotate_all
from experiments.tasks import read_prometheus
from tests.experiments.asking.test_prometheus_reading import channels_of, measured_run
from tests.experiments.conftest import MakeMember
from tests.experiments.telling.receiver import Receiver, running_receiver

LOAD = ChannelQuery("load1", 'node_load1{instance="{host}:9100"}', "load")
SECRET = "only-prometheus-knows-it"
BASE_S = 1_790_000_000.0


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.BENCHHUB_WEBHOOK_HTTP = True
    settings.BENCHHUB_WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    with running_receiver() as one:
        yield one


def wanted(url: str = "https://prometheus.example.com", *queries: ChannelQuery, **more: Any) -> Wanted:
    return Wanted(more.pop("name", "prod"), url, queries or (LOAD,), **more)


def answer(kind: str, result: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "given, field, words",
    [
        (wanted(name=" "), "name", "name has 1 to"),
        (wanted(name="a\nb"), "name", "printable"),
        (wanted("prometheus:9090"), "url", "https://"),
        (wanted("http://prometheus.example.com"), "url", "https://"),
        (wanted("https://ada:pw@prometheus.example.com"), "url", "without a user"),
        (wanted("https://prometheus.example.com/?x=1"), "url", "without a query"),
        (wanted("https://prometheus.example.com/api/v1/"), "url", "without /api/v1"),
        (wanted("https://prometheus.example.com/api/v1/query_range"), "url", "without /api/v1"),
        (wanted("https://127.0.0.1:9090"), "url", "not public"),
        (wanted("https://169.254.169.254"), "url", "not public"),
        (wanted("https://2130706433"), "url", "ordinary form"),
        (wanted("https://[::ffff:10.0.0.1]"), "url", "not public"),
        (wanted(auth="digest"), "auth", "one of none, bearer, basic"),
        (wanted(auth="bearer"), "secret", "Give the token"),
        (wanted(auth="basic", username="ada"), "secret", "Give the password"),
        (wanted(auth="basic", secret="x"), "username", "Give the user"),
        (wanted(auth="basic", secret="x", username="a:b"), "username", "colon"),
        (wanted(auth="bearer", secret="x", username="ada"), "username", "Only the auth basic"),
        (wanted(auth="bearer", secret="two words"), "secret", "without blanks"),
        (wanted(secret="x"), "secret", "needs the auth"),
        (Wanted("prod", "https://prometheus.example.com", ()), "queries", "1 to 20 queries"),
        (wanted("https://p.example.com", *[LOAD] * (MOST_QUERIES + 1)), "queries", "1 to 20 queries"),
        (wanted("https://p.example.com", LOAD, LOAD), "queries.1.channel", "Two queries of the sut"),
        (wanted("https://p.example.com", ChannelQuery("Load", "up")), "queries.0.channel", "lowercase"),
        (wanted("https://p.example.com", ChannelQuery("a.b", "up")), "queries.0.channel", "lowercase"),
        (wanted("https://p.example.com", ChannelQuery("a" * 61, "up")), "queries.0.channel", "1 to 60"),
        (wanted("https://p.example.com", ChannelQuery("a", "up", role="driver-2")), "queries.0.role", "each driver"),
        (wanted("https://p.example.com", ChannelQuery("a", "up", unit="x" * 21)), "queries.0.unit", "at most 20"),
        (wanted("https://p.example.com", ChannelQuery("a", "up", step_s=0)), "queries.0.step_s", "1 to 3,600"),
        (
            wanted("https://p.example.com", ChannelQuery("a", "up", label="a-b")),
            "queries.0.label",
            "no name of a label",
        ),
        (wanted("https://p.example.com", ChannelQuery("a", " ")), "queries.0.query", "1 to 1,000"),
        (wanted("https://p.example.com", ChannelQuery("a", "x" * 1001)), "queries.0.query", "1 to 1,000"),
        (wanted("https://p.example.com", ChannelQuery("a", "up\0")), "queries.0.query", "printable"),
        (
            wanted("https://p.example.com", ChannelQuery("a", 'up{i="{hots}"}')),
            "queries.0.query",
            "no placeholder {hots}",
        ),
        (
            wanted("https://p.example.com", ChannelQuery("a", "rate(x[$__rate_interval])")),
            "queries.0.query",
            "Variables of Grafana",
        ),
    ],
)
def test_what_does_not_fit_is_refused_at_its_field_and_stores_nothing(
    admin: Member, given: Wanted, field: str, words: str
) -> None:
    with pytest.raises(RequestError) as refusal:
        create_source(admin, given)
    assert refusal.value.field == field
    assert words in refusal.value.message
    assert not PrometheusSource.objects.exists()


def test_braces_of_promql_are_no_placeholders() -> None:
    for promql in ('up{job="{host}"}', 'x{a=~"b{2,3}"}', r'x{a=~"\\p{Greek}+"}', '{__name__="up"}', "up{}"):
        filled = ChannelQuery("a", promql, step_s=5).filled({"host": "sut-1"}, 5)
        assert filled == promql.replace("{host}", "sut-1")
    assert ChannelQuery("a", "rate(x[{step}])", step_s=5).filled({}, 7) == "rate(x[7s])"


@pytest.mark.django_db
def test_admins_alone_keep_sources_and_the_trail_says_what_they_did(admin: Member, make_member: MakeMember) -> None:
    editor = make_member(admin.team, Role.EDITOR)
    with pytest.raises(Forbidden):
        create_source(editor, wanted())
    source = create_source(admin, wanted(auth="bearer", secret=SECRET))
    with pytest.raises(Forbidden):
        change_source(editor, source, wanted())
    with pytest.raises(Forbidden):
        delete_source(editor, source)
    change_source(admin, source, wanted("https://prometheus.example.com/other", auth="bearer", secret="another"))
    delete_source(admin, source)
    entries = AuditEntry.objects.order_by("id")
    assert [one.action for one in entries] == ["prometheus.create", "prometheus.change", "prometheus.delete"]
    assert entries[1].after["secret"] == "changed"
    assert SECRET not in json.dumps(list(entries.values("before", "after")))


@pytest.mark.django_db
def test_a_secret_is_sealed_rotates_and_goes_to_no_other_place(admin: Member) -> None:
    source = create_source(admin, wanted(auth="bearer", secret=SECRET))
    stored = bytes(source.secret)
    assert stored
    assert SECRET.encode() not in stored
    assert f"prometheus:{source.pk}" in {one.row for one in rotate_all()}
    change_source(admin, source, wanted("https://prometheus.example.com/prefix", auth="bearer"))
    assert login_of(source) == {"Authorization": f"Bearer {SECRET}"}
    for moved in (
        wanted("https://other.example.com", auth="bearer"),
        wanted(auth="basic", username="ada"),
    ):
        with pytest.raises(RequestError) as refusal:
            change_source(admin, source, moved)
        assert refusal.value.field == "secret"
    change_source(admin, source, wanted())
    assert bytes(source.secret) == b""


@pytest.mark.django_db
def test_names_and_channels_are_a_teams_own_and_few(admin: Member, other_admin: Member) -> None:
    create_source(admin, wanted())
    with pytest.raises(Conflict) as taken:
        create_source(admin, wanted("https://p.example.com", ChannelQuery("other", "up")))
    assert taken.value.field == "name"
    with pytest.raises(RequestError) as channel:
        create_source(admin, wanted(name="second"))
    assert (channel.value.field, "The source prod has" in channel.value.message) == ("queries.0.channel", True)
    create_source(other_admin, wanted())
    for number in range(1, MOST_SOURCES):
        create_source(admin, wanted("https://p.example.com", ChannelQuery(f"c{number}", "up"), name=f"n{number}"))
    with pytest.raises(Conflict):
        create_source(admin, wanted("https://p.example.com", ChannelQuery("more", "up"), name="more"))
    assert len(sources_of(admin.team)) == MOST_SOURCES
    assert len(sources_of(other_admin.team)) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "login, header",
    [
        ({}, None),
        ({"auth": "bearer", "secret": SECRET}, f"Bearer {SECRET}"),
        (
            {"auth": "basic", "username": "ada", "secret": "pä ss"},
            f"Basic {base64.b64encode('ada:pä ss'.encode()).decode()}",
        ),
    ],
)
def test_it_is_asked_with_its_login_and_below_its_path(
    receiver: Receiver, admin: Member, stock: dict[str, Any], login: dict[str, str], header: str | None
) -> None:
    source = create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}/prometheus/", **login))
    receiver.answer = answer("scalar", [BASE_S, "1"])
    assert client.Prometheus(source).clock().now_s == BASE_S
    assert receiver.paths == ["/prometheus/api/v1/query?query=time%28%29"]
    assert receiver.headers[0].get("Authorization") == header
    # As Thanos and VictoriaMetrics may say it.
    receiver.answer = answer("vector", [{"metric": {}, "value": [BASE_S, "1"]}])
    assert client.Prometheus(source).clock().now_s == BASE_S


def series(count: int) -> Any:
    return [{"metric": {"n": str(number)}, "values": [[BASE_S, "1"]]} for number in range(count)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "status, body, words, again",
    [
        (401, b"no", "It answered 401: the login of the source is not accepted.", False),
        (403, b"no", "It answered 403: the login", False),
        (404, b"<h1>no</h1>", "It answered 404: no API of Prometheus is there", False),
        (
            400,
            b'{"status": "error", "error": "1:3: parse error"}',
            "It refused the query (400): 1:3: parse error",
            False,
        ),
        (
            422,
            b'{"status": "error", "error": "too many\\nsamples"}',
            "It refused the query (422): too many samples",
            False,
        ),
        (302, b"", "It answered with a redirect, which is not followed", False),
        (500, b"oops", "It answered 500: oops", True),
        (503, b"", "It answered 503", True),
        (429, b"slow down", "It answered 429: slow down", True),
        (200, b"<html>Sign in</html>", "It did not answer as Prometheus does: '<html>Sign in</html>'", False),
        (200, b"{}", "It did not answer as Prometheus does: '{}'", False),
        (200, b'{"status": "error", "error": "x"}', "It did not answer as Prometheus does", False),
        (200, answer("vector", []), "It did not answer as Prometheus does", False),
        (200, answer("matrix", [{"metric": {}, "values": [[BASE_S, "many"]]}]), "It did not answer as", False),
        (200, answer("matrix", [{"metric": {}, "values": [[BASE_S]]}]), "It did not answer as", False),
        (200, answer("matrix", []), "In this time it has no series", True),
        (200, answer("matrix", [{"metric": {}, "values": [[BASE_S, "NaN"], [BASE_S, "+Inf"]]}]), "only NaN", True),
        (200, answer("matrix", series(2)), "The query gives 2 series, and a channel is one", False),
        (200, answer("matrix", series(4000)), "The query gives 4,000 series", False),
    ],
)
def test_an_answer_of_another_kind_is_told_and_asked_again_where_that_may_help(
    receiver: Receiver, admin: Member, status: int, body: bytes, words: str, again: bool
) -> None:
    source = create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}"))
    receiver.status, receiver.answer, receiver.location = status, body, "http://169.254.169.254/" * (status == 302)
    asked = client.Range(BASE_S, BASE_S + 10, 1)
    with pytest.raises(PrometheusError) as refusal:
        channels_in(LOAD, client.Prometheus(source).over("up", asked))
    assert words in str(refusal.value)
    assert refusal.value.final is not again
    assert len(receiver.paths) == 1  # no redirect was followed


@pytest.mark.django_db
def test_more_series_than_channels_may_be_are_refused_also_with_a_label(receiver: Receiver, admin: Member) -> None:
    source = create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}"))
    receiver.answer = answer("matrix", series(MOST_SERIES + 1))
    labelled = ChannelQuery("a", "up", label="n")
    found = client.Prometheus(source).over("up", client.Range(BASE_S, BASE_S + 10, 1))
    with pytest.raises(PrometheusError, match="at most 5 become channels"):
        channels_in(labelled, found)
    assert set(channels_in(labelled, found[:2])) == {"prometheus.a.0", "prometheus.a.1"}


@pytest.mark.django_db
def test_an_endless_and_a_slow_answer_end_by_themselves(
    receiver: Receiver, admin: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}"))
    receiver.endless = True
    with pytest.raises(PrometheusError, match="more than 4,096 KiB") as endless:
        client.Prometheus(source, limit_s=60).clock()
    receiver.endless, receiver.slow = False, True
    with pytest.raises(PrometheusError, match=r"No complete answer within 0\.2 s") as slow:
        client.Prometheus(source, limit_s=0.2).clock()
    assert (endless.value.final, slow.value.final) == (False, False)


@pytest.mark.django_db
def test_a_name_that_leads_inside_is_not_connected_to(settings: Any, receiver: Receiver, admin: Member) -> None:
    settings.BENCHHUB_WEBHOOK_NETWORKS = []
    source = create_source(admin, wanted(f"http://prometheus.example.com:{receiver.port}"))

    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    with pytest.raises(PrometheusError, match=r"The name leads to 127\.0\.0\.1, which is not public"):
        client.Prometheus(source, resolve=resolve).clock()
    assert receiver.paths == []


@pytest.mark.django_db
def test_a_server_that_is_away_fails_no_run_and_is_asked_a_few_times(
    settings: Any, receiver: Receiver, admin: Member, stock: dict[str, Any]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    source = create_source(admin, wanted(f"http://127.0.0.1:{port}"))
    run = measured_run(admin, stock, BASE_S)
    (row,) = reading.readings_of(run)
    for pause in (*reading.PAUSES, None):
        began_at = database_now()
        assert reading.due() == [row.pk]
        read_prometheus(row.pk)
        row.refresh_from_db()
        assert "The connection failed" in row.problem
        if pause is None:
            assert row.next_at is None
        else:
            assert row.next_at is not None
            assert began_at + pause <= row.next_at <= database_now() + pause
            PrometheusReading.objects.filter(pk=row.pk).update(next_at=database_now() - timedelta(seconds=1))
    assert (row.tries, reading.due(), channels_of(run)) == (len(reading.PAUSES) + 1, [], {})
    assert (run.outcome, run.state) == (Run.Outcome.SUCCEEDED, Run.State.FINISHED)
    assert source.readings.count() == 1


@pytest.mark.django_db
def test_what_is_due_is_asked_for_each_team_by_turns(
    receiver: Receiver, admin: Member, other_admin: Member, stock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_AT_ONCE", 3)
    mine, theirs = (create_source(member, wanted()) for member in (admin, other_admin))
    runs = [measured_run(admin, stock, BASE_S) for _ in range(4)]
    PrometheusReading.objects.all().delete()
    for age_min, (run, source) in enumerate([*((run, mine) for run in reversed(runs)), (runs[0], theirs)][::-1]):
        due_at = database_now() - timedelta(minutes=1 + age_min)  # those of one team wait longer than the other's
        PrometheusReading.objects.create(run=run, source=source, next_at=due_at)
    found = PrometheusReading.objects.in_bulk(reading.due())
    asked = [(one.source_id, one.run_id) for one in (found[pk] for pk in reading.due())]
    assert asked == [(mine.pk, runs[3].pk), (theirs.pk, runs[0].pk), (mine.pk, runs[2].pk)]


@pytest.mark.django_db
def test_a_server_without_an_answer_is_left_alone_for_all_runs_and_other_sources_are_asked(
    receiver: Receiver, admin: Member, stock: dict[str, Any]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    source = create_source(admin, wanted(f"http://127.0.0.1:{port}"))
    create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}", ChannelQuery("load5", "node_load5"), name="other"))
    for _ in range(3):
        measured_run(admin, stock, BASE_S)
    asked, *waiting = source.readings.order_by("pk")
    read_prometheus(asked.pk)
    asked.refresh_from_db()
    assert asked.next_at is not None
    for one in waiting:
        one.refresh_from_db()
        assert one.next_at is not None
        assert one.next_at >= asked.next_at
        assert (one.tries, one.problem) == (0, "")
    assert set(reading.due()) == set(PrometheusReading.objects.exclude(source=source).values_list("pk", flat=True))


@pytest.mark.django_db
def test_a_server_that_answers_but_refuses_one_run_keeps_no_other_run_waiting(
    receiver: Receiver, admin: Member, stock: dict[str, Any]
) -> None:
    receiver.answer = answer("scalar", [BASE_S, str(BASE_S)])  # to every question, and no query is answered so
    source = create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}"))
    for _ in range(2):
        measured_run(admin, stock, BASE_S)
    asked, other = source.readings.order_by("pk")
    read_prometheus(asked.pk)
    asked.refresh_from_db()
    assert asked.problem
    assert reading.due() == [other.pk]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tries_before", "is_over", "problem"),
    [
        (0, False, "BenchHub made a mistake in asking it."),
        (len(reading.PAUSES), True, "BenchHub made a mistake in asking it."),
        (len(reading.PAUSES) + 1, True, "No worker came to the end of asking it."),
    ],
)
def test_what_nobody_foresaw_is_stored_and_given_up_like_any_other_problem(
    receiver: Receiver, admin: Member, stock: dict[str, Any], tries_before: int, is_over: bool, problem: str
) -> None:
    async def broken(host: str, port: int) -> list[str]:
        raise LookupError(host)

    create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}"))
    measured_run(admin, stock, BASE_S)
    PrometheusReading.objects.update(tries=tries_before)
    reading.read(PrometheusReading.objects.get().pk, resolve=broken)
    row = PrometheusReading.objects.get()
    assert row.problem.startswith(problem)
    assert (row.next_at is None) is is_over


@pytest.mark.django_db
@pytest.mark.parametrize(("duration_s", "step_s"), ((600, 2), (43_200, 5)))
def test_a_query_says_the_step_that_is_asked_which_is_longer_of_a_run_of_many_hours(
    receiver: Receiver, admin: Member, stock: dict[str, Any], duration_s: int, step_s: int
) -> None:
    query = ChannelQuery("rate", "rate(x[{step}])", step_s=2)
    create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}", query))
    run = measured_run(admin, stock, BASE_S, duration_s)
    (row,) = reading.readings_of(run)
    receiver.answer = answer("scalar", [BASE_S, str(BASE_S)])
    read_prometheus(row.pk)
    (asked,) = (parse_qs(urlsplit(path).query) for path in receiver.paths if "query_range" in path)
    assert (asked["step"], asked["query"]) == ([str(step_s)], [f"rate(x[{step_s}s])"])


@pytest.mark.django_db
def test_nothing_is_noted_for_a_run_that_did_not_measure_or_a_source_that_is_off(
    admin: Member, stock: dict[str, Any]
) -> None:
    source = create_source(admin, wanted(is_active=False))
    run = measured_run(admin, stock, BASE_S)
    assert reading.readings_of(run) == []
    with pytest.raises(Conflict, match="no Prometheus source"):
        reading.read_again(admin, run)
    change_source(admin, source, wanted())
    (row,) = reading.read_again(admin, run)
    assert row.next_at is not None
    change_source(admin, source, wanted(is_active=False))
    row.refresh_from_db()
    assert row.next_at is None


@pytest.mark.django_db
def test_a_run_that_is_deleted_while_it_is_read_leaves_nothing(
    receiver: Receiver, admin: Member, stock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    create_source(admin, wanted(f"http://127.0.0.1:{receiver.port}"))
    run = measured_run(admin, stock, BASE_S)
    (row,) = reading.readings_of(run)
    ask = reading._ask

    def asked(*given: Any) -> None:
        PrometheusReading.objects.filter(pk=row.pk).delete()
        ask(*given)

    monkeypatch.setattr(reading, "_ask", asked)
    receiver.answer = answer("scalar", [BASE_S, "1"])
    read_prometheus(row.pk)
    assert channels_of(run) == {}
    assert reading.readings_of(run) == []
