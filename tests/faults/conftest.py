"""A stage on the session's own database and broker, with hosts to play on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from experiments.models import Member
from tests.experiments.conftest import admin, make_member, team
from tests.faults.stage import Actor, Stage, surroundings, workers_pull
from tests.sshd import SshdHost, running_sshd

__all__ = ["admin", "make_member", "team"]


@pytest.fixture(scope="session")
def sshd_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshdHost, ...]]:
    """Three hosts on the loopback address; work without root."""
    folders = [tmp_path_factory.mktemp(name) for name in ("a", "b", "c")]
    with running_sshd(folders[0]) as a, running_sshd(folders[1]) as b, running_sshd(folders[2]) as c:
        yield a, b, c


def environment(data_dir: Path) -> dict[str, str]:
    """What a worker needs to work on this test's own database and broker."""
    database = connection.settings_dict
    url = f"postgresql://{quote(database['USER'])}@/{database['NAME']}?host={quote(database['HOST'])}"
    return surroundings(url, settings.REDIS_URL, data_dir=data_dir, key_file=Path(settings.BENCHHUB_KEY_FILE))


@pytest.fixture
def pulls() -> bool:
    """Whether the workers are those of a site, which fetch their runs over HTTPS: as a test or the environment says."""
    return workers_pull()


@pytest.fixture
def stage(
    transactional_db: None, admin: Member, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, pulls: bool
) -> Iterator[Stage]:
    """An empty stage; its workers are killed at the end."""
    data_dir = tmp_path_factory.getbasetemp() / "data-of-workers"  # one for all: one nursery serves many tests
    data_dir.mkdir(exist_ok=True)
    stage = Stage(tmp_path, admin, environment(data_dir), forks_workers=True, pulls=pulls)
    yield stage
    stage.close()


@pytest.fixture
def pair(stage: Stage, sshd_hosts: tuple[SshdHost, ...]) -> tuple[Actor, Actor]:
    """A SUT and a driver host on that stage."""
    return stage.add_host("sut", sshd_hosts[0], roles="sut"), stage.add_host("driver", sshd_hosts[1], roles="driver")
