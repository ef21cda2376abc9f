"""A team as a file: what comes back says the same, secrets stay behind, and a bad archive stores nothing."""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from experiments.keeping.demo.seeding import seed_runs
from experiments.keeping.transfer import archive as archives
from experiments.keeping.transfer.archive import ArchiveError
from experiments.keeping.transfer.exporting import export_team
from experiments.keeping.transfer.importing import import_team
from experiments.keeping.transfer.parts import LEFT_OUT, PARTS, references
from experiments.models import (
    Artifact,
    AuditEntry,
    DriverSet,
    Experiment,
    Host,
    Member,
    Run,
    RunEvent,
    SampleSeries,
    Series,
    Team,
    Token,
    Trend,
)
from experiments.registry.runs.artifacts import keep
from experiments.registry.runs.file_store import whole
from experiments.registry.teams.members import add_service
from tests.experiments.api.conftest import ApiClient, MakeApi, api, make_api
from tests.experiments.api.test_ingest import result

__all__ = ["api", "make_api"]  # fixtures of the API's tests

RUNS = 250


@pytest.fixture
def filled(admin: Member, api: ApiClient) -> Team:
    """A team with hosts, documents, experiments with verdicts, series, trends, files, and a run that waits."""
    seed_runs(admin.team, RUNS)
    for day in range(1, 6):
        body = result(history="nightly", measured_at=f"2026-01-0{day}T00:00:00Z")
        assert api.post("/results", body).status_code == 201
    Run.objects.filter(number=7).update(notes="Ünïcode, \u2028 and \\ stay")
    Run.objects.filter(number=8).update(retry_of=Run.objects.get(number=7))
    Host.objects.filter(name="seed-sut-arm64").update(dirty_run=Run.objects.get(number=9))
    Trend.objects.update(last_experiment_id=Experiment.objects.order_by("pk")[0].pk)
    Run.objects.create(team=admin.team, number=RUNS + 6, state=Run.State.QUEUED)
    return admin.team


@pytest.fixture
def exported(filled: Team, tmp_path: Path) -> Path:
    path = tmp_path / "team.benchhub"
    export_team(filled, path)
    return path


def answers(client: ApiClient, team: Team) -> dict[str, Any]:
    """What the API says of a team, with the team's name and the ids of its experiments made equal."""
    numbers = {pk: f"experiment-{at}" for at, pk in enumerate(_experiments(team))}
    paths = ["/runs?limit=200", "/runs?limit=200&sort=-throughput_rps&label=branch%3Dmain", "/series", "/hosts"]
    paths += ["/recipes", "/workloads", "/applications", "/compare?baseline=1&candidate=2", "/alerts", "/profiles"]
    for number in (1, 7, 8, RUNS, RUNS + 1):
        paths += [f"/runs/{number}{part}" for part in ("", "/config", "/samples", "/metrics", "/artifacts", "/verdict")]
    paths += [f"/series/{series.fingerprint}?metric=throughput_rps" for series in Series.objects.for_team(team)]
    found = {path: _plain(client, path, team) for path in paths}
    found |= {f"verdict of {name}": _plain(client, f"/experiments/{pk}/verdict", team) for pk, name in numbers.items()}
    text = json.dumps(found, sort_keys=True).replace(f"/t/{team.slug}/", "/t/TEAM/")
    for pk, name in numbers.items():
        text = text.replace(f'"experiment": {pk},', f'"experiment": "{name}",').replace(
            f"/experiments/{pk}/", f"/experiments/{name}/"
        )
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def _experiments(team: Team) -> list[int]:
    return list(Experiment.objects.for_team(team).order_by("pk").values_list("pk", flat=True))


def _plain(client: ApiClient, path: str, team: Team) -> Any:
    answer = client.get(path)
    assert answer.status_code in {200, 404, 409}, (path, answer.content)
    found = answer.json()
    if path == "/hosts":
        for host in found["items"] if isinstance(found, dict) else found:
            for own in ("public_key", "state", "state_reason", "dirty_run"):
                host.pop(own, None)
    return found


def test_an_imported_team_says_the_same(
    filled: Team, exported: Path, admin: Member, api: ApiClient, make_api: MakeApi
) -> None:
    before = answers(api, filled)
    imported = import_team(exported, slug="moved")
    there = Member.objects.get(team=imported.team, user=admin.user)
    assert there.role == admin.role
    waiting = before["/runs?limit=200"]["items"].pop(0)
    assert waiting["state"] == "queued"
    after = answers(make_api(there), imported.team)
    before["/runs?limit=200"]["items"] = before["/runs?limit=200"]["items"][:199]
    after["/runs?limit=200"]["items"] = after["/runs?limit=200"]["items"][:199]
    for found in (before, after):
        found["/runs?limit=200"].pop("next_cursor")
    for path in before:
        assert after[path] == before[path], path
    moved = Run.objects.for_team(imported.team)
    assert (moved.count(), imported.team.next_run_number) == (RUNS + 5, filled.next_run_number)
    eighth = moved.get(number=8)
    assert eighth.retry_of == moved.get(number=7)
    assert eighth.queued_at == Run.objects.for_team(filled).get(number=8).queued_at
    assert SampleSeries.objects.filter(run__team=imported.team).count() == SampleSeries.objects.count() // 2
    kept = Artifact.objects.filter(run__team=imported.team).order_by("run__number").values_list("sha256", "content")
    assert list(kept) == list(
        Artifact.objects.filter(run__team=filled).order_by("run__number").values_list("sha256", "content")
    )


def test_large_files_travel_from_one_place_of_files_to_another(admin: Member, tmp_path: Path, settings: Any) -> None:
    place = {"BACKEND": "benchhub.files_on_disk.FilesOnDisk"}
    settings.STORAGES = settings.STORAGES | {"files": {**place, "OPTIONS": {"location": str(tmp_path / "there")}}}
    run = Run.objects.create(team=admin.team, number=1, state=Run.State.FINISHED)
    contents = {"large.bin": bytes(range(256)) * 8192, "small.txt": b"small"}
    for name, content in contents.items():
        keep(run, name, content, media_type="application/octet-stream")
    export_team(admin.team, tmp_path / "team")
    shutil.rmtree(tmp_path / "there")
    settings.STORAGES = settings.STORAGES | {"files": {**place, "OPTIONS": {"location": str(tmp_path / "here")}}}
    moved = import_team(tmp_path / "team", slug="moved").team
    there = Artifact.objects.filter(run__team=moved)
    assert {file.name: whole(file) for file in there} == contents
    assert f"/{moved.pk}/" in str(there.get(name="large.bin").stored)
    # Where no place is set the database takes them, up to its limit.
    settings.STORAGES = {name: one for name, one in settings.STORAGES.items() if name != "files"}
    again = import_team(tmp_path / "team", slug="again").team
    assert {file.name: bytes(file.content or b"") for file in Artifact.objects.filter(run__team=again)} == contents


def test_hosts_get_new_keys_and_wait_out_of_service(filled: Team, exported: Path) -> None:
    imported = import_team(exported, slug="moved")
    ids = []
    for host in Host.objects.for_team(imported.team):
        assert host.state == Host.State.DRAINED
        assert host.public_key.startswith("ssh-ed25519 ")
        assert bytes(host.private_key)
        assert host.leased_by is None
        ids.append(host.pk)
    sets = DriverSet.objects.for_team(imported.team)
    assert sets.exists()
    for one in sets:
        assert [int(pk) for pk in one.key.split(",")] == [host.pk for host in one.in_order]
        assert {host.pk for host in one.in_order} <= set(ids)
    dirty = Host.objects.for_team(imported.team).get(name="seed-sut-arm64")
    assert dirty.dirty_run == Run.objects.for_team(imported.team).get(number=9)
    trends = Trend.objects.filter(series__team=imported.team)
    assert set(trends.values_list("last_experiment_id", flat=True)) == {_experiments(imported.team)[0]}


def test_an_experiment_that_was_running_waits_for_a_person(filled: Team, tmp_path: Path) -> None:
    Experiment.objects.filter(pk=_experiments(filled)[0]).update(state=Experiment.State.RUNNING)
    export_team(filled, tmp_path / "team")
    imported = import_team(tmp_path / "team", slug="moved")
    assert Experiment.objects.get(pk=_experiments(imported.team)[0]).state == Experiment.State.PAUSED


def test_no_secret_is_in_the_archive(filled: Team, exported: Path) -> None:
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    hashes = list(Token.objects.values_list("secret_hash", flat=True))
    assert hashes
    with zipfile.ZipFile(exported) as packed:
        assert "token.jsonl" not in packed.namelist()
        for name in packed.namelist():
            text = packed.read(name).decode("utf-8", "replace")
            for secret in (*hashes, "private_key", "secret_hash", "password"):
                assert secret not in text, (name, secret)


def test_export_and_import_are_in_the_audit_trail(filled: Team, exported: Path) -> None:
    imported = import_team(exported, slug="moved")
    assert AuditEntry.objects.get(team=filled, action="team.export").after == {"runs": RUNS + 5, "left_out": 1}
    entry = AuditEntry.objects.get(team=imported.team, action="team.import")
    assert entry.after is not None
    assert (entry.after["from"], entry.after["runs"]) == ("perf", RUNS + 5)


def test_every_model_is_exported_or_left_out_for_a_reason() -> None:
    exported_ones = {part.name for part in PARTS}
    known = {str(model._meta.model_name) for model in apps.get_app_config("experiments").get_models(True)}
    assert exported_ones & LEFT_OUT.keys() == set()
    assert known == exported_ones | LEFT_OUT.keys()


def test_what_a_row_needs_is_stored_before_it() -> None:
    order = {part.model: at for at, part in enumerate(PARTS)}
    for part in PARTS:
        for name, to in references(part).items():
            column = next(one for one in part.model._meta.concrete_fields if one.attname == name)
            assert column.null or order[to] < order[part.model], (part.name, name)


def test_a_team_that_is_there_is_not_touched(filled: Team, exported: Path) -> None:
    with pytest.raises(ArchiveError, match="There is a team perf here already"):
        import_team(exported)
    assert Team.objects.count() == 1


def test_a_person_with_another_address_is_not_taken_for_the_same(filled: Team, exported: Path) -> None:
    get_user_model().objects.filter(username="ada").update(email="ada@elsewhere.example")
    with pytest.raises(ArchiveError, match="account ada here with another e-mail address"):
        import_team(exported, slug="moved")
    assert Team.objects.count() == 1
    get_user_model().objects.create_user("eve")
    imported = import_team(exported, slug="moved", users={"ada": "eve"})
    assert Member.objects.get(team=imported.team).user.get_username() == "eve"


def test_who_is_not_there_gets_an_account_without_a_password(filled: Team, exported: Path) -> None:
    get_user_model().objects.filter(username="ada").update(username="somebody-else")
    imported = import_team(exported, slug="moved")
    assert imported.new_users == ("ada",)
    assert not get_user_model().objects.get(username="ada").has_usable_password()


def test_a_service_of_the_team_becomes_one_of_the_imported_team(filled: Team, admin: Member, tmp_path: Path) -> None:
    add_service(admin, "ci", "launcher")
    export_team(filled, tmp_path / "team")
    imported = import_team(tmp_path / "team", slug="moved")
    service = Member.objects.get(team=imported.team, is_service=True)
    assert (service.user.get_username(), service.role) == ("moved:ci", "launcher")
    assert imported.new_users == ()


Spoil = Callable[[zipfile.ZipFile, dict[str, bytes]], object]


def _add(name: str, data: bytes = b"x", mode: int = 0) -> Spoil:
    def add(packed: zipfile.ZipFile, _entries: dict[str, bytes]) -> None:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        packed.writestr(entry, data)

    return add


def _rows(name: str, change: Callable[[list[dict[str, Any]]], Any]) -> Spoil:
    def spoil(_packed: zipfile.ZipFile, entries: dict[str, bytes]) -> None:
        rows = [json.loads(line) for line in entries[name].splitlines()]
        change(rows)
        entries[name] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    return spoil


def _manifest(**changes: Any) -> Spoil:
    def spoil(_packed: zipfile.ZipFile, entries: dict[str, bytes]) -> None:
        entries["manifest.json"] = json.dumps({**json.loads(entries["manifest.json"]), **changes}).encode()

    return spoil


def _artifact(_packed: zipfile.ZipFile, entries: dict[str, bytes]) -> None:
    name = next(name for name in entries if name.startswith("artifacts/"))
    entries[name] += b"."


SPOILED: list[tuple[Spoil, str]] = [
    (_add("../evil"), "an entry that no team has"),
    (_add("/etc/passwd"), "an entry that no team has"),
    (_add("link.jsonl", b"/etc/passwd", stat.S_IFLNK | 0o777), "an entry that no team has"),
    (_add("bomb.jsonl", b"0" * (64 << 20)), "times smaller"),
    (lambda _packed, entries: entries.pop("manifest.json"), "no manifest"),
    (_manifest(format=99), "has format 99"),
    (_manifest(surprise=1), "no manifest"),
    (_rows("run.jsonl", lambda rows: rows.pop()), "refers to a run that is not in the archive|should hold"),
    (_rows("run.jsonl", lambda rows: rows.append(rows[-1])), "two rows of run with the id"),
    (_rows("run.jsonl", lambda rows: rows[0].update(state="measuring")), "a run that is measuring"),
    (_rows("run.jsonl", lambda rows: rows[0].update(finished_at="yesterday")), "not what it should be"),
    (_rows("member.jsonl", lambda rows: rows[0].update(role="root")), "role 'root'"),
    (_rows("schedule.jsonl", lambda rows: rows.append({"id": 1, "crontab_id": [*"x****", "UTC"]})), "a timetable"),
    (_rows("run.jsonl", lambda rows: rows[0].update(nonsense=1)), "knows no 'nonsense' of a run"),
    (_rows("run.jsonl", lambda rows: rows[0].update(number="x")), "not fit together|not what it should be"),
    (_rows("run.jsonl", lambda rows: rows[0].update(created_by_id="nobody")), "not what it should be"),
    (_rows("runevent.jsonl", lambda rows: rows.append({"id": 1, "run_id": 10**9})), "not in the archive"),
    (_rows("artifact.jsonl", lambda rows: rows[0].update(id=10**9)), "lacks artifacts/1000000000"),
    (lambda _packed, entries: entries.update({"run.jsonl": b"[1]\n"}), "no object"),
    (lambda _packed, entries: entries.update({"run.jsonl": b"{\n"}), "no JSON"),
    (_artifact, "checksum differs"),
]


def test_an_archive_that_is_not_right_stores_nothing(filled: Team, exported: Path) -> None:
    """One test for all of them: filling the team takes longer than they do."""
    with zipfile.ZipFile(exported) as packed:
        whole = {name: packed.read(name) for name in packed.namelist()}
    broken = exported.with_name("broken")
    before = (Team.objects.count(), Run.objects.count(), get_user_model().objects.count())
    for spoil, says in SPOILED:
        entries = dict(whole)
        with zipfile.ZipFile(broken, "w", zipfile.ZIP_DEFLATED) as again:
            spoil(again, entries)
            for name, data in entries.items():
                again.writestr(name, data)
        with pytest.raises(ArchiveError, match=says):
            import_team(broken, slug="moved")
        assert (Team.objects.count(), Run.objects.count(), get_user_model().objects.count()) == before
    for keep_ratio in (0.0, 0.5, 0.99):
        cut = exported.read_bytes()[: int(exported.stat().st_size * keep_ratio)]
        broken.write_bytes(cut)
        with pytest.raises(ArchiveError, match="damaged or no archive"):
            import_team(broken, slug="moved")


def test_an_archive_in_which_events_and_samples_still_have_numbers_is_taken(filled: Team, tmp_path: Path) -> None:
    def number(rows: list[dict[str, Any]]) -> None:
        for at, row in enumerate(rows):
            row["id"] = at + 1

    run = Run.objects.for_team(filled).filter(state="finished").latest("number")
    RunEvent.objects.create(run=run, seq=run.last_seq + 1, kind="logged", payload={}, fence=1, at=run.queued_at)
    export_team(filled, tmp_path / "new")
    old = tmp_path / "old"
    with zipfile.ZipFile(tmp_path / "new") as packed, zipfile.ZipFile(old, "w", zipfile.ZIP_DEFLATED) as again:
        for name in packed.namelist():
            entries = {name: packed.read(name)}
            if name in ("runevent.jsonl", "sampleseries.jsonl"):
                _rows(name, number)(packed, entries)
            again.writestr(name, entries[name])

    moved = import_team(old, slug="moved").team

    for model in (RunEvent, SampleSeries):
        found = {team: model._default_manager.filter(run__team=team).count() for team in (filled, moved)}
        assert found[moved] == found[filled] > 0, model


def test_a_row_that_is_too_large_is_not_read(filled: Team, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_LINE_BYTES", 100)
    with pytest.raises(ArchiveError, match=r"A row of .* is larger than"):
        import_team(exported, slug="moved")


def test_the_commands_move_a_team(filled: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "perf.benchhub"
    call_command("export", "perf", str(file))
    assert f"{RUNS + 5} runs of team perf" in capsys.readouterr().out
    with pytest.raises(CommandError, match="is there already"):
        call_command("export", "perf", str(file))
    with pytest.raises(CommandError, match="There is no team nobody"):
        call_command("export", "nobody", str(file))
    with pytest.raises(CommandError, match="There is a team perf here already"):
        call_command("import", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import", str(tmp_path / "nothing"))
    call_command("import", str(file), "--as", "moved")
    assert f"Team moved: {RUNS + 5} runs" in capsys.readouterr().out
