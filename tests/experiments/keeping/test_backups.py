"""A backup is whole, says what it is, and is refused before anything is changed when it cannot be restored."""

from __future__ import annotations

import io
import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection

from experiments.keeping.backups.archive import DUMP, MANIFEST, BackupError
from experiments.keeping.backups.daily import Daily, back_up_daily, daily_backups
from experiments.keeping.backups.restoring import restore_backup, verify_backup
from experiments.keeping.backups.writing import write_backup
from experiments.models import Team

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup of a database with one team."""
    Team.objects.create(slug="perf", name="Performance")
    write_backup(tmp_path / "benchhub.backup")
    return tmp_path / "benchhub.backup"


def changed(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    """What writes the backup again with another manifest."""

    def write(file: Path) -> None:
        with zipfile.ZipFile(file) as archive:
            manifest, dump = json.loads(archive.read(MANIFEST)), archive.read(DUMP)
        change(manifest)
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(DUMP, dump)
            archive.writestr(MANIFEST, json.dumps(manifest))

    return write


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3000])


def turn_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(bytes(content))


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a part of one": (cut, "only a part"),
    "a byte turned": (turn_a_byte, "damaged"),
    "another file": (lambda file: file.write_text("hello"), "no backup"),
    "missing": (Path.unlink, "cannot be read"),
    "a later version": (changed(lambda m: m["migrations"].append("experiments.9999_later")), "later than this one"),
    "another form": (changed(lambda m: m.update(format=2)), "another form"),
    "another checksum": (changed(lambda m: m.update(dump_sha256="0" * 64)), "not the one that was written"),
    "keys of somebody else": (changed(lambda m: m.update(key_check="00" * 60)), "key file here does not open"),
    "another SECRET_KEY": (changed(lambda m: m.update(secret_check="x:y")), "SECRET_KEY is another one"),
}


@pytest.mark.parametrize(("breaking", "words"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_restored_whole_is_refused_before_anything_changes(
    backup: Path, breaking: Callable[[Path], Any], words: str
) -> None:
    breaking(backup)
    with pytest.raises(BackupError, match=words):
        restore_backup(backup, replace=True)
    assert Team.objects.filter(slug="perf").exists()


def test_a_backup_says_what_it_holds_and_only_its_owner_reads_it(backup: Path) -> None:
    manifest = verify_backup(backup)
    assert (manifest.teams, manifest.runs) == (1, 0)
    assert "experiments.0001_initial" in manifest.migrations
    assert backup.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in backup.parent.iterdir()] == [backup.name]


def test_a_file_that_is_there_is_not_written_over(backup: Path) -> None:
    with pytest.raises(BackupError, match="there already"):
        write_backup(backup)


def test_a_database_in_use_is_not_replaced(backup: Path) -> None:
    with pytest.raises(BackupError, match="--replace"):
        restore_backup(backup)
    settings = connection.settings_dict
    name, user, host = settings["NAME"], settings["USER"], settings["HOST"]
    with (
        psycopg.connect(dbname=name, user=user, host=host, application_name="web"),
        pytest.raises(BackupError, match=r"1 other connection use the database \(web\)"),
    ):
        restore_backup(backup, replace=True)


def test_lost_keys_may_be_gone_on_without(backup: Path, settings: Any, tmp_path: Path) -> None:
    settings.BENCHHUB_KEY_FILE = tmp_path / "new_keys"
    settings.BENCHHUB_KEY_FILE.write_text(Fernet.generate_key().decode())
    with pytest.raises(BackupError, match="--without-keys"):
        verify_backup(backup)
    assert verify_backup(backup, without_keys=True).teams == 1


def test_the_commands_say_what_they_did(backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("backup", str(backup), verify=True)
    call_command("backup", str(tmp_path / "second"), keys=str(tmp_path / "keys"))
    said = capsys.readouterr().out
    assert "is whole: 0 runs, teams: 1" in said
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "keys").iterdir())
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", str(tmp_path / "no" / "such"))


class Pipe(io.TextIOWrapper):
    """Standard input or output of a process whose other end is a pipe."""

    def __init__(self, content: bytes = b"") -> None:
        self.kept = io.BytesIO(content)
        super().__init__(self.kept)


def test_a_backup_goes_through_pipes_and_what_was_cut_off_is_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Team.objects.create(slug="perf", name="Performance")
    sent = Pipe()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", sent)
        call_command("backup", "-")
    content = sent.kept.getvalue()
    assert capsys.readouterr().err.startswith("0 runs, teams: 1")

    monkeypatch.setattr(sys, "stdin", Pipe(content))
    call_command("backup", "-", verify=True)
    assert capsys.readouterr().out.startswith("- is whole: 0 runs, teams: 1")
    Team.objects.update(name="Later")
    monkeypatch.setattr(sys, "stdin", Pipe(content))
    call_command("restore", "-", replace=True)
    assert Team.objects.get().name == "Performance"
    monkeypatch.setattr(sys, "stdin", Pipe(content[:-3000]))
    with pytest.raises(CommandError, match="only a part"):
        call_command("restore", "-", replace=True)
    assert list(settings.BENCHHUB_DATA_DIR.glob("standard-input.*")) == [], "what came on standard input is not kept"


def test_a_backup_a_day_is_written_once_and_the_oldest_go(backup: Path, settings: Any, tmp_path: Path) -> None:
    assert (back_up_daily(), daily_backups()) == (None, None), "no directory, no backups"
    settings.BENCHHUB_BACKUP_DIR, settings.BENCHHUB_BACKUPS_KEPT = tmp_path / "daily", 2
    assert back_up_daily() is None, "a directory that is not there is said in the log and tried again"
    settings.BENCHHUB_BACKUP_DIR.mkdir()
    assert daily_backups() == Daily("", 0, 0)
    for name in ("benchhub-2020-01-01.backup", "benchhub-2020-01-02.backup", "benchhub-mine.backup"):
        (settings.BENCHHUB_BACKUP_DIR / name).write_text("old")
    file = back_up_daily()
    assert file is not None
    assert verify_backup(file).teams == 1
    left = {one.name for one in settings.BENCHHUB_BACKUP_DIR.iterdir()}
    assert left == {"benchhub-2020-01-02.backup", "benchhub-mine.backup", file.name}
    assert back_up_daily() is None
    assert daily_backups() == Daily(file.name[9:19], file.stat().st_size, 2)


def test_a_backup_needs_its_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.keeping.backups.programs.BUNDLED", "nowhere")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BackupError, match="postgresql-client"):
        write_backup(tmp_path / "benchhub.backup")
