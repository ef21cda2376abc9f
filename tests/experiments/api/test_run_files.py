"""Files of runs as downloads: from the row, from a directory, from a bucket of a real S3 server."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
import requests
from botocore.config import Config
from django.test import Client
from django.urls import reverse
from moto.server import ThreadedMotoServer
from pytest_django.live_server_helper import LiveServer

from clients.python.benchhub_client.connection import Api, Trouble
from experiments.keeping.retention.file_checking import lost_files
from experiments.keeping.retention.file_moving import move_files
from experiments.keeping.retention.file_sweep import kept_days, sweep_files
from experiments.models import Artifact, Member, Run, UnusedFile
from experiments.registry.errors import NotFound
from experiments.registry.runs import file_store
from experiments.registry.runs.artifacts import keep
from experiments.registry.runs.file_store import FileStoreError, look_at_place, opened, whole
from experiments.registry.teams.tokens import issue
from tests.experiments.api.conftest import ApiClient, MakeApi

BUCKET, PREFIX = "benchhub-test", "runs/files"
LARGE = bytes(range(256)) * 40_000  # 10 MB: more than one part of an upload
KEY = {"aws_access_key_id": "someone", "aws_secret_access_key": "secret"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server."""
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    try:
        yield "http://{}:{}".format(*moto.get_host_and_port())
    finally:
        moto.stop()


def client_of(server: str) -> Any:
    return boto3.client(
        "s3", endpoint_url=server, region_name="us-east-1", config=Config(retries={"total_max_attempts": 1}), **KEY
    )


@pytest.fixture
def bucket(server: str, settings: Any) -> str:
    """The bucket of this test; its server's address."""
    requests.post(f"{server}/moto-api/reset", timeout=10).raise_for_status()
    client_of(server).create_bucket(Bucket=BUCKET)
    use(settings, server)
    return server


def use(settings: Any, server: str, **other: str) -> None:
    options = {"bucket": BUCKET, "endpoint": server, "region": "us-east-1", "prefix": PREFIX}
    options |= {"key_id": "someone", "secret": "secret", **other}
    place = {"files": {"BACKEND": "benchhub.files_on_s3.FilesOnS3", "OPTIONS": options}}
    settings.STORAGES = settings.STORAGES | place


def in_directory(settings: Any, tmp_path: Path) -> None:
    place = {"BACKEND": "benchhub.files_on_disk.FilesOnDisk", "OPTIONS": {"location": str(tmp_path / "files")}}
    settings.STORAGES = settings.STORAGES | {"files": place}


@pytest.fixture
def run(admin: Member) -> Run:
    return Run.objects.create(team=admin.team, number=1, state=Run.State.FINISHED)


def kept_in(server: str) -> list[str]:
    return sorted(one["Key"] for one in client_of(server).list_objects_v2(Bucket=BUCKET).get("Contents", ()))


def binary(run: Run, name: str = "a b.bin") -> Artifact:
    return keep(run, name, LARGE, media_type="application/octet-stream")


def body_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)


def addresses(run: Run, file: Artifact) -> tuple[str, str]:
    page = reverse("artifact", kwargs={"team_slug": run.team.slug, "number": run.number, "artifact_id": file.pk})
    return page, f"/api/v1/runs/{run.number}/artifacts/a%20b.bin"


def test_a_large_file_of_a_directory_is_sent_in_pieces_to_its_own_team_alone(
    run: Run, settings: Any, tmp_path: Path, api: ApiClient, other_admin: Member, make_api: MakeApi, admin: Member
) -> None:
    in_directory(settings, tmp_path)
    file = binary(run)
    listed = api.get("/runs/1/artifacts").json()
    assert [(one["name"], one["size_bytes"]) for one in listed] == [("a b.bin", len(LARGE))]
    browser, stranger = Client(), Client()
    browser.force_login(admin.user)
    stranger.force_login(other_admin.user)
    page, _ = addresses(run, file)
    for answer in (browser.get(page), api.get("/runs/1/artifacts/a%20b.bin")):
        assert (answer.status_code, answer.streaming) == (200, True)
        assert answer.headers["Content-Length"] == str(len(LARGE))
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert hashlib.sha256(body_of(answer)).hexdigest() == file.sha256
    assert stranger.get(page).status_code == 404
    assert make_api(other_admin).get("/runs/1/artifacts/a%20b.bin").status_code == 404
    (tmp_path / "files" / str(file.stored)).unlink()
    assert (browser.get(page).status_code, api.get("/runs/1/artifacts/a%20b.bin").status_code) == (404, 404)


def test_a_file_in_a_bucket_opens_with_a_link_that_ends_and_that_strangers_do_not_get(
    run: Run, bucket: str, api: ApiClient, other_admin: Member, make_api: MakeApi, admin: Member
) -> None:
    file = binary(run)
    assert kept_in(bucket) == [f"{PREFIX}/{file.stored}"]
    browser, stranger = Client(), Client()
    browser.force_login(admin.user)
    stranger.force_login(other_admin.user)
    page, _ = addresses(run, file)
    for answer in (browser.get(page), api.get("/runs/1/artifacts/a%20b.bin")):
        assert (answer.status_code, answer.headers["Cache-Control"]) == (302, "no-store")
        link = answer.headers["Location"]
        assert "secret" not in link
        assert 0 < int(parse_qs(urlsplit(link).query)["X-Amz-Expires"][0]) <= 300
        fetched = requests.get(link, timeout=30)
        assert hashlib.sha256(fetched.content).hexdigest() == file.sha256
        assert fetched.headers["Content-Disposition"].startswith("attachment")
    for refused in (stranger.get(page), make_api(other_admin).get("/runs/1/artifacts/a%20b.bin")):
        assert refused.status_code == 404
        assert "Location" not in refused.headers


def test_where_browsers_do_not_reach_the_bucket_its_files_come_through_the_pages(
    run: Run, bucket: str, settings: Any, api: ApiClient
) -> None:
    settings.BENCHHUB_BUCKET_LINKS = False
    file = binary(run)
    answer = api.get("/runs/1/artifacts/a%20b.bin")
    assert (answer.status_code, answer.streaming) == (200, True)
    assert hashlib.sha256(body_of(answer)).hexdigest() == file.sha256


@pytest.mark.django_db(transaction=True)
def test_the_client_follows_a_link_to_a_file_without_its_token(
    run: Run, bucket: str, admin: Member, live_server: LiveServer
) -> None:
    file = binary(run)
    _, token = issue(admin, name="test", scopes=["read"])
    api = Api(live_server.url, token, 10.0, "test", print)
    assert hashlib.sha256(api.download("/runs/1/artifacts/a%20b.bin")).hexdigest() == file.sha256
    with pytest.raises(Trouble, match="no such artifact"):
        api.download("/runs/1/artifacts/other")


def test_files_in_a_bucket_move_there_and_are_swept_up_and_looked_for(run: Run, bucket: str) -> None:
    digest = hashlib.sha256(LARGE).hexdigest()
    Artifact.objects.create(run=run, name="a", sha256=digest, content=LARGE)
    assert move_files() == 1
    file = run.artifacts.get()
    assert whole(file) == LARGE
    assert list(lost_files(read=True)) == []
    other = binary(run, "b")
    other.delete()
    client_of(bucket).put_object(Bucket=BUCKET, Key="others/file", Body=b"x")
    sweep_files()
    days = kept_days() + 1
    UnusedFile.objects.update(seen_at=UnusedFile.objects.get().seen_at.replace(year=2020))
    assert (days > 7, sweep_files()) == (True, 1)
    assert kept_in(bucket) == ["others/file", f"{PREFIX}/{file.stored}"]
    assert look_at_place() == f"bucket {BUCKET}"
    client_of(bucket).delete_object(Bucket=BUCKET, Key=f"{PREFIX}/{file.stored}")
    with pytest.raises(NotFound):
        opened(file)
    assert [sentence.split(": ")[1].split(" (")[0] for sentence in lost_files(read=False)] == ["not there"]


def gone(settings: Any, server: str) -> None:
    use(settings, "http://127.0.0.1:9")


def without_bucket(settings: Any, server: str) -> None:
    use(settings, server, bucket="no-such-bucket")


@pytest.mark.parametrize("harm", [gone, without_bucket])
def test_a_bucket_that_is_away_loses_nothing_and_is_said_so(
    run: Run, bucket: str, settings: Any, api: ApiClient, harm: Callable[[Any, str], None]
) -> None:
    there = binary(run)
    harm(settings, bucket)
    waiting = binary(run, "waiting")
    assert (waiting.stored, whole(waiting)) == (None, LARGE)
    with pytest.raises(FileStoreError, match="cannot be used now"):
        move_files()
    with pytest.raises(FileStoreError):
        look_at_place()
    settings.BENCHHUB_BUCKET_LINKS = False
    assert api.get("/runs/1/artifacts/a%20b.bin").status_code in (404, 503)
    use(settings, bucket)
    assert move_files() == 1
    waiting.refresh_from_db()
    assert (bool(waiting.stored), whole(waiting), whole(there)) == (True, LARGE, LARGE)
    assert file_store.has_place()
