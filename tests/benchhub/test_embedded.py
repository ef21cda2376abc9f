from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from benchhub import embedded
from benchhub.processes import is_running, wait_until
from benchhub.service_account import AccountError, reachable_binaries, require_entry, service_account
from tests import needs

PATIENCE_S = 300.0
USER = """
import sys
from pathlib import Path
from benchhub import embedded
print(embedded.ensure(Path(sys.argv[1])).database_url, flush=True)
sys.stdin.read()
"""


@contextmanager
def user(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the services until its input ends."""
    argv = [sys.executable, "-c", USER, str(data_dir)]
    with subprocess.Popen(
        argv, cwd=embedded.PROJECT_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("postgresql://")
            yield process
        finally:
            process.kill()


def answers(data_dir: Path) -> bool:
    urls = embedded.urls(data_dir)
    with psycopg.connect(urls.database_url) as connection:
        row = connection.execute("SELECT current_setting('fsync'), current_setting('listen_addresses')").fetchone()
    with redis.Redis.from_url(urls.redis_url) as client:
        return row == ("on", "") and bool(client.ping())


def stopped(data_dir: Path) -> bool:
    return embedded.status(data_dir).keeper_pid is None


def server_pids(data_dir: Path) -> list[int]:
    files = (data_dir / "postgres" / "18" / "postmaster.pid", data_dir / "redis" / "redis.pid")
    return [int(file.read_text().split("\n", 1)[0]) for file in files]


def alive(pid: int) -> bool:
    return is_running(pid, "postgres") or is_running(pid, "redis-server")


def test_urls_name_sockets_in_the_data_directory_and_start_nothing(data_dir: Path) -> None:
    urls = embedded.urls(data_dir)

    assert urls.database_url == f"postgresql://benchhub@/benchhub?host={str(data_dir / 'sockets').replace('/', '%2F')}"
    assert urls.redis_url == f"unix://{data_dir}/sockets/redis.sock?db=0"
    assert list(data_dir.iterdir()) == []


def test_a_data_directory_with_a_long_path_gets_short_sockets_of_its_own() -> None:
    first, second = (embedded.Places(Path("/" + letter * 100)).sockets for letter in "ab")

    assert first != second
    assert len(str(first / ".s.PGSQL.5432.lock")) <= embedded.SOCKET_PATH_LIMIT_BYTES
    assert first == embedded.Places(Path("/" + "a" * 100)).sockets


def test_services_live_as_long_as_their_last_user_even_one_that_is_killed(data_dir: Path) -> None:
    with user(data_dir), user(data_dir) as last:
        assert answers(data_dir)
        pids = server_pids(data_dir)
        embedded.ensure(data_dir)
        embedded.release(data_dir)
        assert answers(data_dir)
        last.kill()
        last.wait()
        assert answers(data_dir)

    assert wait_until(lambda: stopped(data_dir), seconds=PATIENCE_S)
    assert [pid for pid in pids if alive(pid)] == []


def test_pinned_services_stay_without_users_until_they_are_stopped(data_dir: Path) -> None:
    embedded.ensure(data_dir)
    embedded.pin(data_dir)
    embedded.release(data_dir)
    embedded.wait_while_unused(data_dir)

    assert embedded.status(data_dir).pinned
    assert answers(data_dir)
    assert embedded.stop(data_dir)
    assert not embedded.stop(data_dir)
    assert stopped(data_dir)


def test_the_pin_of_an_earlier_keeper_does_not_count(data_dir: Path) -> None:
    with user(data_dir):
        (data_dir / "services" / "pinned").write_text("1")

        assert not embedded.status(data_dir).pinned
    assert wait_until(lambda: stopped(data_dir), seconds=PATIENCE_S)


def test_concurrent_first_users_share_one_keeper(data_dir: Path) -> None:
    def keeper_seen_by_a_user(_: int) -> int | None:
        with user(data_dir):
            return embedded.status(data_dir).keeper_pid

    with user(data_dir), ThreadPoolExecutor(4) as pool:
        keepers = set(pool.map(keeper_seen_by_a_user, range(4)))

    assert len(keepers) == 1


def test_data_survives_a_killed_keeper_whose_servers_end_with_it(data_dir: Path) -> None:
    database_url = embedded.ensure(data_dir).database_url
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    keeper_pid = embedded.status(data_dir).keeper_pid
    assert keeper_pid is not None
    pids = server_pids(data_dir)

    os.kill(keeper_pid, signal.SIGKILL)
    assert wait_until(lambda: not any(alive(pid) for pid in pids), seconds=PATIENCE_S)
    embedded.ensure(data_dir)

    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_a_server_that_dies_is_started_again(data_dir: Path) -> None:
    embedded.ensure(data_dir)
    old = server_pids(data_dir)[1]

    os.kill(old, signal.SIGKILL)

    def is_back() -> bool:
        try:
            return answers(data_dir) and server_pids(data_dir)[1] != old
        except (redis.ConnectionError, FileNotFoundError):
            return False

    assert wait_until(is_back, seconds=PATIENCE_S)


def test_a_start_that_fails_says_why_in_the_words_of_the_server(data_dir: Path) -> None:
    embedded.ensure(data_dir)
    embedded.stop(data_dir)
    (data_dir / "postgres" / "18" / "postgresql.conf").write_text("no_such_setting = 1\n")

    with pytest.raises(embedded.EmbeddedError, match="no_such_setting"):
        embedded.ensure(data_dir)


@needs.root("only root needs another account")
def test_as_root_the_servers_run_under_an_account_without_rights_and_a_closed_directory_is_refused(
    data_dir: Path,
) -> None:
    account = service_account()
    assert account is not None
    embedded.ensure(data_dir)

    assert {Path(f"/proc/{pid}").stat().st_uid for pid in server_pids(data_dir)} == {account.uid}
    data_dir.chmod(0o700)
    with pytest.raises(AccountError, match="BENCHHUB_DATA_DIR"):
        require_entry(data_dir / "postgres", account)


@needs.root("only root needs another account")
def test_programs_in_a_closed_directory_are_copied_to_where_the_account_can_run_them(data_dir: Path) -> None:
    data_dir.chmod(0o711)
    closed = data_dir / "closed"
    installed = closed / "package" / "pginstall18" / "bin"
    installed.mkdir(parents=True)
    (closed / "package.libs").mkdir()
    (installed / "postgres").write_text("#!/bin/sh\necho 18\n")
    (installed / "postgres").chmod(0o755)
    closed.chmod(0o700)
    account = service_account()

    found = reachable_binaries(installed, account, data_dir / "programs")

    assert found == data_dir / "programs" / "package" / "pginstall18" / "bin"
    assert found == reachable_binaries(installed, account, data_dir / "programs")
