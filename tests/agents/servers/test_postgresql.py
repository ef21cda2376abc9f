"""PostgreSQL: what it is given, what it says of itself, and a real one started from its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.command import CommandResult
from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.servers.postgresql.configuration import parse_postgresql, postgresql_conf
from agents.servers.postgresql.server import PostgreSQL
from agents.steps.base.step import StepContext
from agents.steps.properties import PropertiesStep
from benchhub import embedded_servers
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.native_servers import made, run, started
from tests.agents.servers.tomcat_install import tree_hash
from tests.listening import listening

VERSION = b"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"


PROGRAMS = str(embedded_servers.postgres_programs())
"""Where the PostgreSQL is that BenchHub brings: another one need not be installed."""


def require_postgresql(server: PostgreSQL) -> None:
    """Skips the test where the server cannot run, with what its own look at the host says."""
    said = run(server.version_command())
    needs.require(said.returncode == 0, f"PostgreSQL ({said.stderr.decode().strip()})", "apt-get install postgresql")


def query(server: PostgreSQL, sql: str, user: str = "bench") -> subprocess.CompletedProcess[str]:
    """What psql of another host would get."""
    address = f"host={server.listen} port={server.port} user={user} dbname={user}"
    return subprocess.run(
        [f"{PROGRAMS}/psql", "-XAt", "-c", sql, address], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("bin_dir, checksums", [("", True), (PROGRAMS, False)], ids=["installed", "own"])
def test_a_real_postgresql_runs_with_a_data_directory_of_its_own(bin_dir: str, checksums: bool, tmp_path: Path) -> None:
    server = PostgreSQL.model_validate(
        {
            "bin_dir": bin_dir,
            "port": free_port(),
            "settings": {"shared_buffers": "32MB", "synchronous_commit": False, "max_connections": 20},
            "pgbench_scale": 1,
            "sql": "CREATE TABLE shop (a int);\nINSERT INTO shop SELECT generate_series(1, 3);\n",
            "checksums": checksums,
        }
    ).instance(0, "127.0.0.2")
    require_postgresql(server)
    instance = made(server, tmp_path / ("a-directory-whose-name-is-too-long-for-the-path-of-a-socket" * 2) / "instance")
    assert run(server.create_instance(instance)).returncode != 0, "an instance is never made over another"
    assert not Path(instance, "data/postmaster.pid").exists(), "nothing runs before the start"
    step = PropertiesStep(path="postgresql.conf", values={"shared_buffers": "48MB", "jit": "off"})
    context = StepContext(instance)
    for command in step.apply(context, step.parse(run(step.probe(context)).stdout)):
        assert run(command).returncode == 0
    not_yet = run(server.ready_command(instance) or server.version_command())
    assert "takes no checkpoint yet" in server.unready(CommandResult(not_yet.returncode, not_yet.stdout))
    with started(server, instance) as postgresql:
        assert listening({postgresql.pid}) == {("127.0.0.2", server.port)}
        assert query(server, "SELECT count(*) FROM pgbench_accounts").stdout == "100000\n"
        assert query(server, "SELECT sum(a) FROM shop").stdout == "6\n"
        assert "pg_execute_server_program" in query(server, "COPY shop TO PROGRAM 'id'").stderr
        assert "permission denied" in query(server, "SELECT pg_read_file('/etc/passwd')").stderr
        assert "no pg_hba.conf entry" in query(server, "SELECT 1", user="postgres").stderr
        with Path(instance, "postgresql.conf").open("a") as conf:
            conf.write("max_connections = 30\nwork_mem = nonsense\n")
        effective = postgresql.effective()
    assert effective["postgresql.settings.shared_buffers"] == "48MB"
    assert effective["postgresql.settings.synchronous_commit"] == "off"
    assert effective["postgresql.settings.jit"] == "off"
    assert effective["postgresql.settings.data_checksums"] == ("on" if checksums else "off")
    assert effective["postgresql.settings.max_connections"] == "20"
    assert effective["postgresql.pending_restart.max_connections"] == "waits for a restart"
    assert "postgresql.refused.work_mem" in effective
    assert effective["postgresql.build"].startswith("PostgreSQL ")
    assert step.explains("postgresql.settings.shared_buffers")


def test_a_prepared_data_directory_is_copied_and_stays_as_it_is(tmp_path: Path) -> None:
    server = PostgreSQL(bin_dir=PROGRAMS, port=free_port(), sql="CREATE TABLE shop (a int);").instance(0, "127.0.0.1")
    require_postgresql(server)
    made(server, tmp_path / "first" / "instance")
    prepared = tmp_path / "prepared"
    shutil.move(tmp_path / "first" / "instance" / "data", prepared)
    (prepared / "postgresql.auto.conf").write_text("port = 1\n")
    before = tree_hash(prepared)
    copy = PostgreSQL(bin_dir=PROGRAMS, port=free_port(), prepared=str(prepared)).instance(0, "127.0.0.1")
    require_postgresql(copy)
    with started(copy, made(copy, tmp_path / "second" / "instance")) as postgresql:
        assert query(copy, "INSERT INTO shop VALUES (1); SELECT count(*) FROM shop").stdout.endswith("1\n")
        effective = postgresql.effective()
    assert effective["postgresql.settings.port"] == str(copy.port), "ALTER SYSTEM of then is not ours"
    assert re.fullmatch(r"\d+ at [0-9A-F]+/[0-9A-F]+", effective["postgresql.data.state"])
    assert tree_hash(prepared) == before


def test_data_that_are_kept_are_made_once_and_each_run_has_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    sql = "CREATE TABLE shop AS SELECT clock_timestamp() AS made;"
    server = PostgreSQL(bin_dir=PROGRAMS, port=free_port(), sql=sql, keep_data=True).instance(0, "127.0.0.1")
    require_postgresql(server)
    found, sums = [], []
    for number in range(2):
        with started(server, made(server, tmp_path / str(number) / "instance")) as postgresql:
            found.append(query(server, "SELECT made FROM shop").stdout)
            assert query(server, "INSERT INTO shop VALUES (now()) RETURNING 1").stdout.startswith("1\n")
            sums.append(postgresql.effective()["postgresql.data.sha256"])
    assert found[0].count("\n") == 1
    assert found[0] == found[1], "what a run changed is not in what the next one gets"
    assert sums[0] == sums[1]
    assert len(sums[0]) == 64
    (kept,) = (tmp_path / ".benchhub/data").iterdir()
    other = server.model_copy(update={"sql": f"{sql}\nSELECT 1;"})
    made(other, tmp_path / "other" / "instance")
    assert len(list((tmp_path / ".benchhub/data").iterdir())) == 2, "other SQL makes other data"
    with (kept / "data" / "PG_VERSION").open("a") as changed:
        changed.write("\n")
    refused = run(server.create_instance(str(tmp_path / "third" / "instance")))
    assert refused.returncode != 0
    assert f"remove {kept}" in refused.stderr.decode()


@pytest.mark.parametrize("broken, said", [("postmaster.pid", b"is in use"), ("pg_tblspc/1", b"tablespaces elsewhere")])
def test_a_prepared_data_directory_that_a_copy_could_harm_is_refused(tmp_path: Path, broken: str, said: bytes) -> None:
    server = PostgreSQL(bin_dir=PROGRAMS, port=free_port())
    require_postgresql(server)
    made(server, tmp_path / "first" / "instance")
    prepared = tmp_path / "first" / "instance" / "data"
    os.symlink(tmp_path, prepared / broken)
    failed = run(
        PostgreSQL(bin_dir=PROGRAMS, prepared=str(prepared)).create_instance(str(tmp_path / "second" / "instance"))
    )
    assert failed.returncode != 0
    assert said in failed.stderr


def test_sql_that_fails_is_named_and_leaves_no_server(tmp_path: Path) -> None:
    server = PostgreSQL(bin_dir=PROGRAMS, port=free_port(), sql="SELECT 1 / 0;")
    require_postgresql(server)
    failed = run(server.create_instance(str(tmp_path / "instance")))
    assert failed.returncode != 0
    assert b"division by zero" in failed.stderr
    assert not (tmp_path / "instance" / "data" / "postmaster.pid").exists()


def test_what_is_missing_on_the_host_is_named(tmp_path: Path) -> None:
    missing = run(PostgreSQL(bin_dir=str(tmp_path)).version_command())
    assert missing.returncode != 0
    assert b"there is no postgres in" in missing.stderr
    require_postgresql(PostgreSQL(bin_dir=PROGRAMS))
    no_data = run(PostgreSQL(bin_dir=PROGRAMS, prepared=str(tmp_path)).version_command())
    assert b"is no data directory" in no_data.stderr


def test_the_version_is_read_and_a_data_directory_of_another_one_is_refused() -> None:
    assert PostgreSQL().parse_version(VERSION) == "15.18"
    server = PostgreSQL(prepared="/srv/pg")
    assert server.parse_version(b"prepared 15\n" + VERSION) == "15.18"
    with pytest.raises(PlanError, match=r"of PostgreSQL 14, and this is 15\.18"):
        server.parse_version(b"prepared 14\n" + VERSION)
    with pytest.raises(ParseError):
        PostgreSQL().parse_version(b"mysqld 8\n")


def test_values_are_quoted_as_its_file_has_them() -> None:
    assert "x = 'a''b\\\\c'\n" in postgresql_conf(5432, "", {"x": "a'b\\c"})
    assert "listen_addresses = '*'\n" in postgresql_conf(5432, "", {})


def test_what_the_server_says_is_read_flat() -> None:
    text = (
        b'{"version": "PostgreSQL 15", "settings": {"jit": "on", "x": null}, "pending": ["a"], "refused": [["b", "c"]]}'
    )
    assert parse_postgresql(text) == {
        "postgresql.build": "PostgreSQL 15",
        "postgresql.settings.jit": "on",
        "postgresql.settings.x": "",
        "postgresql.pending_restart.a": "waits for a restart",
        "postgresql.refused.b": "c",
    }
    with pytest.raises(ParseError, match="too many clients"):
        parse_postgresql(b"psql: error: FATAL:  sorry, too many clients already\n")
    with pytest.raises(ParseError, match="no answer"):
        parse_postgresql(b"")


def test_jvm_options_are_refused() -> None:
    with pytest.raises(PlanError, match="no effect on PostgreSQL"):
        PostgreSQL().environment("/i", ProcessStart(jvm_options=("-Xmx1g",)))


@pytest.mark.parametrize(
    "raw, named",
    [
        ({"bin_dir": "bin"}, "bin_dir"),
        ({"prepared": "/srv/$(id)"}, "prepared"),
        ({"settings": {"port": 1}}, "port"),
        ({"settings": {"listen_addresses": "*"}}, "listen_addresses"),
        ({"settings": {"jit": "on\nport = 1"}}, "jit"),
        ({"settings": {"a b": "c"}}, "settings"),
        ({"prepared": "/srv/pg", "checksums": True}, "checksums"),
        ({"prepared": "/srv/pg", "keep_data": True}, "keep_data"),
        ({"pgbench_scale": 0}, "pgbench_scale"),
    ],
)
def test_a_postgresql_that_makes_no_sense_is_refused(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        PostgreSQL.model_validate(raw)
