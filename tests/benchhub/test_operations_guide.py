"""What the operator's guide says is done: the commands for one machine, on a filled database and in two directories."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from benchhub import embedded

ROOT = embedded.PROJECT_DIR
GUIDE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
HOSTS, RUNS = 25, 40
FILL = f"""
from django.contrib.auth import get_user_model
from experiments.keeping.demo.seeding import seed_runs
from experiments.registry.hosts.inventory import add_host
from experiments.models import Member, Role, Team
team = Team.objects.create(slug="perf", name="Performance")
user = get_user_model().objects.create_user("ada", email="ada@example.org")
member = Member.objects.create(team=team, user=user, role=Role.ADMIN)
for number in range({HOSTS}):
    add_host(member, name=f"sut-{{number}}", address="127.0.0.1", port=22, user="bench", roles="sut")
seed_runs(team, {RUNS})
"""


NEWEST = sorted(path.stem for path in (ROOT / "experiments" / "migrations").glob("[0-9]*.py"))[-1]
NEXT = f"""
from django.db import migrations, models

class Migration(migrations.Migration):
    dependencies = [("experiments", "{NEWEST}")]
    operations = [
        migrations.AddField("run", "of_the_next_release", models.IntegerField(default=1)),
        migrations.RunSQL("UPDATE experiments_run SET of_the_next_release = number", migrations.RunSQL.noop),
    ]
"""


def next_release(root: Path) -> Path:
    """A copy of the source that has a migration more, as a newer version brings it."""
    for name in ("agents", "benchhub", "clients", "experiments", "frontend", "docs"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("img"))
    for name in ("manage.py", "pyproject.toml", "CHANGELOG.md", "README.md"):
        shutil.copy(ROOT / name, root / name)
    (root / "experiments" / "migrations" / "9999_next.py").write_text(NEXT)
    return root


def block(heading: str, number: int = 0) -> str:
    """A block of commands below a heading of the guide."""
    section = re.split(r"^#{2,3} ", GUIDE.partition(f"{heading}\n")[2], maxsplit=1, flags=re.M)[0]
    return str(re.findall(r"```sh\n(.*?)```", section, flags=re.S)[number])


class Place:
    """An installation on one machine, with a data directory of its own."""

    def __init__(self, data_dir: Path, safe: Path) -> None:
        self.data_dir, self.safe = data_dir, safe
        safe.mkdir(exist_ok=True)
        mine = {"BENCHHUB_DATA_DIR": str(data_dir), "PYTHONUNBUFFERED": "1"}
        taken = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BENCHHUB_KEY_FILE", "DJANGO_SETTINGS_MODULE"}
        self.environment = {name: value for name, value in os.environ.items() if name not in taken} | mine

    def run(self, commands: str) -> str:
        """Run commands of the guide with this directory in place of the usual one; returns what they print."""
        script = re.sub(r"^export .*$", "", commands, flags=re.M).replace(".venv/bin/python", sys.executable)
        script = script.replace("~/benchhub-backup/", f"{self.safe}/").replace("~/benchhub-keys", f"{self.safe}/keys")
        return self._done(["sh", "-euc", script])

    def manage(self, *arguments: str, source: Path = ROOT) -> str:
        return self._done([sys.executable, "manage.py", *arguments], source)

    def _done(self, argv: list[str], source: Path = ROOT) -> str:
        done = subprocess.run(argv, cwd=source, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    def contents(self) -> Any:
        """What the database says of the runs and their files, in one line."""
        statement = (
            "SELECT count(*), md5(string_agg(number || metrics::text || labels::text || finished_at, ',' "
            "ORDER BY number)) FROM experiments_run"
        )
        with psycopg.connect(embedded.urls(self.data_dir).database_url) as connection:
            return connection.execute(statement).fetchone()

    def columns(self) -> set[str]:
        """What the database keeps of a run."""
        statement = "SELECT column_name FROM information_schema.columns WHERE table_name = 'experiments_run'"
        with psycopg.connect(embedded.urls(self.data_dir).database_url) as connection:
            return {str(name) for (name,) in connection.execute(statement)}


@pytest.fixture
def places() -> Iterator[tuple[Place, Place]]:
    """Two empty installations that share a place for backups."""
    root = Path(tempfile.mkdtemp(prefix="benchhub-guide-"))
    root.chmod(0o755)  # for the account that PostgreSQL has under root
    here, there = (Place(root / name, root / "safe") for name in ("a", "b"))
    for place in (here, there):
        embedded.ensure(place.data_dir)  # held, as between two commands nobody would use it
    yield here, there
    for place in (here, there):
        embedded.stop(place.data_dir)
    shutil.rmtree(root)


def kill_in_the_middle(place: Place) -> None:
    """Begin to rotate the keys, and kill the command when some of them are done."""
    argv = [sys.executable, "manage.py", "rotate_keys", "--verbose"]
    with subprocess.Popen(argv, cwd=ROOT, env=place.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline().endswith("sealed anew\n")
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.django_db
def test_a_database_of_an_earlier_state_of_the_source_is_refused_by_name() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE experiments_run DROP COLUMN notes")
    with pytest.raises(CommandError, match=r"earlier state of the source: it lacks experiments_run\.notes\."):
        call_command("migrate", verbosity=0)


@pytest.mark.slow
def test_backup_restore_upgrade_move_and_key_rotation_as_the_guide_says(
    places: tuple[Place, Place], tmp_path: Path
) -> None:
    here, there = places
    early = subprocess.run(
        [sys.executable, "manage.py", "export", "perf", "nowhere"],
        cwd=ROOT, env=here.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (early.returncode, "is not prepared" in early.stderr, early.stderr.count("\n")) == (1, True, 1), early.stderr
    here.manage("migrate", "--noinput", "-v", "0")
    here.manage("shell", "-c", FILL)
    contents = here.contents()
    assert contents[0] == RUNS

    assert "No migrations to apply" in here.manage("migrate", "--noinput")

    archive = here.data_dir / "perf.benchhub"
    here.manage("export", "perf", str(archive))
    there.manage("migrate", "--noinput", "-v", "0")
    assert f"Team perf: {RUNS} runs" in there.manage("import", str(archive))
    assert there.contents() == contents

    # An upgrade keeps what is stored; the way back to the older version is the backup.
    here.run(block("## Backup"))
    upgraded = there.manage("migrate", "--noinput", source=next_release(tmp_path))
    assert "Applying experiments.9999_next... OK" in upgraded
    assert there.contents() == contents
    for key in (here.safe / "keys").iterdir():  # a copy of the directory would give the place its rights as well
        shutil.copy2(key, there.data_dir)
    there.run(block("## Backup", 1))
    assert there.contents() == contents
    assert "of_the_next_release" not in there.columns()

    rotation = block("## Keys")
    there.run(rotation.partition(".venv/bin/python manage.py rotate_keys")[0])
    kill_in_the_middle(there)
    said = re.search(r"(\d+) secrets sealed anew, (\d+) were", there.manage("rotate_keys"))
    assert said is not None
    left, done = int(said[1]), int(said[2])
    assert (left + done, done >= 3) == (HOSTS, True)
    keys = there.data_dir / "fernet_keys"
    new, old = keys.read_text().splitlines()
    keys.write_text(new)
    assert f"0 secrets sealed anew, {HOSTS} were" in there.manage("rotate_keys")
    assert old not in keys.read_text()
