"""What is read from a real streaming replica, and what is not: while it follows, lags, is stopped, or is none."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from django.db import connection, connections, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchhub.prometheus import OperationsCollector
from experiments.models import Member, Run, Series, Team
from experiments.registry import replica as reading
from experiments.registry.replica import ALIAS, PRIMARY, ReplicaState, read_from_replica, replica_state
from experiments.registry.teams.tokens import issue
from tests.experiments.registry.replicas import Replica
from tests.frontend.conftest import FINGERPRINT, MakeRun, browser_of, make_run

__all__ = ["browser_of", "make_run"]  # fixtures of the pages
pytestmark = pytest.mark.django_db(transaction=True, databases=[PRIMARY, ALIAS])

PATIENT_MS, IMPATIENT_MS = 60_000, 1


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[Replica]:
    """Known by its alias before a test begins, which may use no other connections."""
    directory = Path(tempfile.mkdtemp(prefix="benchhub-replica-"))
    replica = Replica(directory)
    connections.settings[ALIAS] = replica.settings
    yield replica
    del connections.settings[ALIAS]
    replica.remove()


@pytest.fixture
def replica(
    server: Replica, transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Replica]:
    """It follows the test's database, and this process reads from it, however long it takes to follow."""
    settings.DATABASE_ROUTERS = ["experiments.registry.replica.Router"]
    settings.BENCHHUB_REPLICA_LAG_MS = PATIENT_MS
    look_again(monkeypatch)
    yield server
    connections[ALIAS].close()


def look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the time were over for which the replica is left alone."""
    monkeypatch.setattr(reading._Away, "until_s", float("-inf"))


def where() -> str:
    """Which connection answers what is asked for reading."""
    return read_from_replica(lambda: Run.objects.all().db)


def measured_there(ask: Callable[[], Any]) -> bool:
    """Whether the replica was asked for runs meanwhile."""
    with CaptureQueriesContext(connections[ALIAS]) as asked:
        ask()
    return any('FROM "experiments_run"' in query["sql"] for query in asked.captured_queries)


def metric(name: str) -> float | None:
    return next((one.samples[0].value for one in OperationsCollector().collect() if one.name == name), None)


def test_what_was_written_a_moment_ago_is_read_from_the_replica(replica: Replica, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1234.0)

    def look() -> tuple[str, Run]:
        return Run.objects.all().db, Run.objects.get(number=run.number)

    alias, found = read_from_replica(look)
    assert (alias, found._state.db, found) == (ALIAS, ALIAS, run)
    assert look()[0] == PRIMARY
    assert replica_state() == ReplicaState(0, "")
    assert (metric("benchhub_replica_read"), metric("benchhub_replica_behind_bytes")) == (1, 0)


def test_histories_and_whole_files_are_read_there_and_pages_are_not(
    replica: Replica, admin: Member, make_run: MakeRun, browser_of: Callable[[Member], Client]
) -> None:
    run = make_run(throughput_rps=1234.0)
    series = Series.objects.create(team=admin.team, fingerprint=FINGERPRINT, last_run=run)
    _, token = issue(admin, name="notebook", scopes=["read"])
    browser, script = browser_of(admin), Client(headers={"Authorization": f"Bearer {token}"})
    team = f"/t/{admin.team.slug}/"
    found: dict[str, Any] = {}

    def asks(client: Client, address: str) -> bool:
        def ask() -> None:
            found[address] = client.get(address)
            assert found[address].status_code == 200, address

        return measured_there(ask)

    points = f"{team}trends/points?series={series.pk}&metric=throughput_rps"
    files = [f"/api/v1/{name}.parquet" for name in ("runs", f"series/{FINGERPRINT}")]
    for client, address in (
        (browser, points),
        (script, f"/api/v1/series/{FINGERPRINT}"),
        *((script, f) for f in files),
    ):
        assert asks(client, address), address
    for client, address in ((browser, f"{team}runs/"), (browser, f"{team}trends/"), (script, "/api/v1/runs")):
        assert not asks(client, address), address

    assert found[f"/api/v1/series/{FINGERPRINT}"].json()["points"][0]["value"] == 1234.0
    for file in files:
        whole = b"".join(found[file].streaming_content) if found[file].streaming else found[file].content
        assert pl.read_parquet(io.BytesIO(whole))["throughput_rps"].to_list() == [1234.0]


def test_what_was_read_there_is_changed_at_the_primary(replica: Replica, make_run: MakeRun) -> None:
    number = make_run(throughput_rps=1000.0).number
    run = read_from_replica(lambda: Run.objects.get(number=number))
    run.notes = "slower since the kernel"
    run.save(update_fields=["notes"])

    assert Run.objects.get(number=number).notes == "slower since the kernel"
    assert run._state.db == PRIMARY


def test_a_transaction_sees_what_it_has_written(replica: Replica) -> None:
    with transaction.atomic():
        Team.objects.create(slug="new", name="New")
        assert read_from_replica(lambda: Team.objects.filter(slug="new").exists())
        assert where() == PRIMARY


def test_the_primary_answers_while_the_replica_lags(
    replica: Replica, settings: Any, monkeypatch: pytest.MonkeyPatch, make_run: MakeRun
) -> None:
    settings.BENCHHUB_REPLICA_LAG_MS = IMPATIENT_MS
    replica.stand_still()
    try:
        run = make_run(throughput_rps=1000.0)
        assert where() == PRIMARY
        assert read_from_replica(lambda: Run.objects.get(number=run.number)) == run
        state = replica_state()
        assert state is not None
        assert state.behind_bytes
        assert f"more than 1 ms behind, {state.behind_bytes} bytes" in state.sentence
        assert metric("benchhub_replica_read") == 0
        assert (metric("benchhub_replica_behind_bytes") or 0) >= state.behind_bytes  # other tests write meanwhile
    finally:
        replica.go_on()
    settings.BENCHHUB_REPLICA_LAG_MS = PATIENT_MS
    assert where() == PRIMARY  # it is left alone for a while
    look_again(monkeypatch)
    assert where() == ALIAS


def test_the_primary_answers_while_the_replica_is_stopped(
    replica: Replica, admin: Member, monkeypatch: pytest.MonkeyPatch, browser_of: Callable[[Member], Client]
) -> None:
    admin.user.is_staff = True
    admin.user.save()
    replica.stop()
    connections[ALIAS].close()
    try:
        assert where() == PRIMARY
        assert metric("benchhub_replica_read") == 0
        page = browser_of(admin).get(f"/t/{admin.team.slug}/operator/").content.decode()
        assert "read from the primary: the replica does not answer" in page
    finally:
        replica.start()
    look_again(monkeypatch)
    assert where() == ALIAS
    assert (
        "which has all that the primary has"
        in browser_of(admin).get(f"/t/{admin.team.slug}/operator/").content.decode()
    )


def test_a_replica_that_goes_away_amid_an_answer_is_made_up_for(replica: Replica, make_run: MakeRun) -> None:
    run, asked = make_run(throughput_rps=1000.0), []

    def look() -> Run:
        asked.append(Run.objects.all().db)
        if asked == [ALIAS]:
            replica.stop()
        return Run.objects.get(number=run.number)

    try:
        assert read_from_replica(look) == run
        assert asked == [ALIAS, PRIMARY]
    finally:
        replica.start()


def test_a_server_that_follows_nobody_is_not_read(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections[ALIAS], "settings_dict", connection.settings_dict)
    connections[ALIAS].close()

    assert where() == PRIMARY
    state = replica_state()
    assert state is not None
    assert state.sentence.endswith("DATABASE_REPLICA_URL leads to a server that is no replica.")
