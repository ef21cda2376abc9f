"""What files of runs hold: small in the row, large outside, nobody else's, never lost by a fault in the middle."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from experiments import tasks
from experiments.keeping.retention import file_moving
from experiments.keeping.retention.file_moving import move_files, waiting_files
from experiments.keeping.retention.file_sweep import kept_days, sweep_files
from experiments.models import Artifact, Installation, Member, Run, UnusedFile
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.runs import file_store
from experiments.registry.runs.artifacts import keep
from experiments.registry.runs.file_store import IN_ROW_BYTES, FileStoreError, most_bytes, opened, stored_names, whole
from experiments.registry.teams.quotas import bytes_of_files, measure_files
from tests.full_disk import full_above

BINARY = "application/octet-stream"
LARGE = bytes(range(256)) * 8192  # 2 MB


@pytest.fixture
def run(admin: Member) -> Run:
    return Run.objects.create(team=admin.team, number=1, state=Run.State.FINISHED)


@pytest.fixture
def place(tmp_path: Path, settings: Any) -> Path:
    """A directory for the files of this test."""
    settings.STORAGES = settings.STORAGES | {
        "files": {"BACKEND": "benchhub.files_on_disk.FilesOnDisk", "OPTIONS": {"location": str(tmp_path / "files")}}
    }
    return tmp_path / "files"


def files_in(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def age(days: float) -> None:
    """As if what was seen unused had been for so many days more."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE experiments_unusedfile SET seen_at = seen_at - make_interval(secs => %s)", [days * 86400]
        )


@pytest.mark.parametrize("size", [0, 1, IN_ROW_BYTES, IN_ROW_BYTES + 1, 3 * IN_ROW_BYTES + 7])
def test_a_file_comes_back_as_it_was_whatever_its_size(run: Run, place: Path, size: int) -> None:
    content = (LARGE * 2)[:size]
    for source in (content, io.BytesIO(content)):
        kept = keep(run, "a.bin", source, media_type=BINARY)
        kept.refresh_from_db()
        assert (kept.stored is not None) == (size > IN_ROW_BYTES)
        assert kept.sha256 == hashlib.sha256(content).hexdigest()
        assert whole(kept) == content
        assert bytes_of_files(run=run) == size
    measure_files()
    run.team.refresh_from_db()
    assert run.team.artifact_bytes == size


def test_a_large_file_is_closed_to_others_and_named_by_installation_team_and_sum(run: Run, place: Path) -> None:
    kept = keep(run, "a.bin", LARGE, media_type=BINARY)
    (file,) = files_in(place)
    assert str(file.relative_to(place)) == kept.stored
    assert kept.stored.startswith(f"{Installation.objects.get().uuid}/{run.team_id}/{kept.sha256}-")
    assert [path.stat().st_mode & 0o077 for path in (file, *list(file.parents)[:3])] == [0] * 4
    assert not list(place.parent.glob("*.part"))


def test_two_files_of_one_content_share_nothing(run: Run, place: Path) -> None:
    one, other = (keep(run, name, LARGE, media_type=BINARY) for name in ("a", "b"))
    assert one.stored != other.stored
    one.delete()
    sweep_files()
    age(kept_days() + 1)
    assert sweep_files() == 1
    assert whole(other) == LARGE


def test_a_large_text_is_kept_without_secrets_also_across_the_border_of_two_pieces(run: Run, place: Path) -> None:
    text = b"x" * ((1 << 20) - 12) + b" password=hunter22 \xfe\n" + b"y\n" * (1 << 19)
    kept = keep(run, "server.log", io.BytesIO(text))
    assert kept.stored is not None
    assert whole(kept) == text.replace(b"hunter22", b"(hidden)")


def test_a_row_has_its_content_in_one_place(run: Run) -> None:
    for wrong in (
        {"content": None},
        {"content": b"x", "stored": "x", "stored_bytes": 1},
        {"content": None, "stored": "x"},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Artifact.objects.create(run=run, name="x", sha256="0", **wrong)


def test_what_is_too_large_is_refused_before_anything_is_stored(
    run: Run, place: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert most_bytes() == 512 << 20
    monkeypatch.setattr(file_store, "MAX_BYTES", len(LARGE) - 1)
    with pytest.raises(RequestError, match=r"a\.bin is larger than 1 MB"):
        keep(run, "a.bin", LARGE, media_type=BINARY)
    settings.STORAGES = {name: one for name, one in settings.STORAGES.items() if name != "files"}
    assert most_bytes() == 16 << 20
    with pytest.raises(RequestError, match="Set BENCHHUB_FILES_DIR or BENCHHUB_BUCKET for up to 512 MB"):
        keep(run, "a.bin", io.BytesIO(LARGE * 9), media_type=BINARY)
    assert not Artifact.objects.exists()
    assert files_in(place) == []


def test_without_a_place_the_database_has_them_all(run: Run, settings: Any) -> None:
    settings.STORAGES = {name: one for name, one in settings.STORAGES.items() if name != "files"}
    assert whole(keep(run, "a.bin", LARGE, media_type=BINARY)) == LARGE
    assert (move_files(), sweep_files()) == (0, 0)
    assert bytes(Artifact.objects.get().content or b"") == LARGE


def test_while_the_place_cannot_be_used_a_file_waits_in_the_database(run: Run, place: Path) -> None:
    place.write_text("no directory")
    kept = keep(run, "a.bin", LARGE, media_type=BINARY)
    assert (kept.stored, whole(kept)) == (None, LARGE)
    with pytest.raises(FileStoreError, match="cannot be used now"):
        keep(run, "b.bin", io.BytesIO(LARGE * 9), media_type=BINARY)
    with pytest.raises(FileStoreError):
        move_files()
    place.unlink()
    assert move_files() == 1
    kept.refresh_from_db()
    assert (bool(kept.stored), whole(kept)) == (True, LARGE)


def test_what_a_failed_transaction_left_is_swept_up_days_later_and_nothing_else(run: Run, place: Path) -> None:
    kept = keep(run, "kept.bin", LARGE, media_type=BINARY)
    with transaction.atomic():
        keep(run, "lost.bin", LARGE, media_type=BINARY)
        transaction.set_rollback(True)
    strangers = [place / "other" / str(run.team_id) / f"{'0' * 64}-{'0' * 32}", place / "notes.txt"]
    strangers.append(place / str(Installation.objects.get().uuid) / str(run.team_id) / "notes.txt")
    for stranger in strangers:
        stranger.parent.mkdir(parents=True, exist_ok=True)
        stranger.write_text("not ours")
    assert sweep_files() == 0
    assert UnusedFile.objects.count() == 1
    assert len(files_in(place)) == 5
    age(kept_days() - 0.1)
    assert sweep_files() == 0
    age(0.2)
    assert sweep_files() == 1
    assert files_in(place) == sorted([*strangers, place / str(kept.stored)])
    assert not UnusedFile.objects.exists()


def test_what_a_full_disk_took_of_a_file_does_not_stay_there(run: Run, place: Path) -> None:
    large_rows(run, 1)
    with full_above(len(LARGE) // 2), pytest.raises(FileStoreError, match="File too large"):
        move_files()
    assert files_in(place) == []
    assert move_files() == 1


@pytest.mark.parametrize("failing", ["move_files", "sweep_files"])
def test_the_hourly_round_sweeps_though_nothing_can_be_moved_and_moves_though_nothing_can_be_swept(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fails() -> int:
        raise FileStoreError("no space left on device")

    file_store.put(file_store.folder_of(run.team_id), LARGE, name="unused", media_type=BINARY)
    sweep_files()
    age(kept_days() + 1)
    large_rows(run, 1)
    monkeypatch.setattr(tasks, failing, fails)
    tasks.clean_up()
    swept, moved = not UnusedFile.objects.exists(), Artifact.objects.exclude(stored=None).exists()
    assert (swept, moved) == (failing == "move_files", failing == "sweep_files")


def test_a_list_that_cannot_be_read_is_an_error_of_the_place(run: Run, place: Path) -> None:
    assert list(stored_names()) == []
    place.mkdir()
    (place / str(Installation.objects.get().uuid)).write_text("no directory")
    with pytest.raises(FileStoreError, match="The list of files: the place of files cannot be used now"):
        sweep_files()


def test_a_name_that_comes_into_use_is_not_swept_up(run: Run, place: Path) -> None:
    there = file_store.put(file_store.folder_of(run.team_id), LARGE, name="a", media_type=BINARY)
    sweep_files()
    age(100)
    kept = keep(run, "a", there, media_type=BINARY)
    assert sweep_files() == 0
    assert not UnusedFile.objects.exists()
    assert whole(kept) == LARGE


def test_files_of_removed_runs_go(run: Run, place: Path) -> None:
    keep(run, "a.bin", LARGE, media_type=BINARY)
    Run.objects.all().delete()
    sweep_files()
    assert len(files_in(place)) == 1
    age(kept_days() + 1)
    sweep_files()
    assert files_in(place) == []


def large_rows(run: Run, count: int) -> None:
    """As versions before stored them."""
    for number in range(count):
        content = LARGE + bytes([number])
        digest = hashlib.sha256(content).hexdigest()
        Artifact.objects.create(run=run, name=f"{number}.bin", sha256=digest, content=content)


def test_rows_move_one_by_one_and_an_interrupted_move_is_gone_on_with(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large_rows(run, 4)
    keep(run, "small.txt", b"small")
    put_outside, calls = file_store.put_outside, iter(range(100))

    def killed(*arguments: Any) -> Any:
        there = put_outside(*arguments)
        if next(calls) == 2:
            raise KeyboardInterrupt  # after the content was put, before the row says so
        return there

    monkeypatch.setattr(file_moving, "put_outside", killed)
    with pytest.raises(KeyboardInterrupt):
        move_files()
    assert waiting_files()[0] == 2
    assert move_files(most_s=0) == 1
    assert move_files() == 1
    assert move_files() == 0
    for number in range(4):
        assert whole(run.artifacts.get(name=f"{number}.bin")) == LARGE + bytes([number])
    assert run.artifacts.filter(stored=None).get().name == "small.txt"
    assert len(files_in(place)) == 5  # one that no row names
    assert len(list(stored_names())) == 5


def test_a_file_that_is_replaced_while_it_moves_stays_replaced(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large_rows(run, 1)
    put_outside = file_store.put_outside

    def replaced(*arguments: Any) -> Any:
        keep(run, "0.bin", b"newer", media_type=BINARY)
        return put_outside(*arguments)

    monkeypatch.setattr(file_moving, "put_outside", replaced)
    assert move_files() == 0
    assert whole(run.artifacts.get()) == b"newer"


def test_a_damaged_row_stays_where_it_is(run: Run, place: Path) -> None:
    Artifact.objects.create(run=run, name="a", sha256="0" * 64, content=LARGE)
    assert move_files() == 0
    assert whole(run.artifacts.get()) == LARGE


def damaged(file: Path) -> None:
    file.write_bytes(LARGE + b"?")


HARMS: dict[str, Callable[[Path], Any]] = {
    "not there": Path.unlink,
    "has 1 bytes": lambda file: file.write_bytes(b"x"),
    "another content than it was: its checksum differs": damaged,
}


@pytest.mark.parametrize(("said", "harm"), HARMS.items())
def test_the_command_moves_and_finds_what_is_lost(
    run: Run, place: Path, capsys: pytest.CaptureFixture[str], said: str, harm: Any
) -> None:
    large_rows(run, 2)
    call_command("files")
    assert "In it, although larger than 1 MB: 2 files, 4.2 MB" in capsys.readouterr().out
    call_command("files", "--move", "--verify", "--read")
    assert "Outside of the database: 2 files, 4.2 MB" in capsys.readouterr().out
    harm(place / str(run.artifacts.get(name="0.bin").stored))
    with pytest.raises(CommandError, match="1 files of runs are not as they should be"):
        call_command("files", "--verify", "--read")
    assert f"run #1, 0.bin: {said}" in capsys.readouterr().err


def test_a_lost_content_is_said_so(run: Run, place: Path) -> None:
    kept = keep(run, "a.bin", LARGE, media_type=BINARY)
    (place / str(kept.stored)).unlink()
    with pytest.raises(NotFound, match=r"a\.bin is not where files are kept any more"):
        opened(kept)
