"""PostgreSQL, each run with a data directory of its own; the installation is only read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from agents.base.command import Command, CommandResult, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import installed_home
from agents.base.model import AS_TEXT
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.formats.tuning_settings import POSTGRESQL, setting_is_harmless
from agents.servers.base.directory import Directory
from agents.servers.base.files import instance_with
from agents.servers.base.frames import parse_frames
from agents.servers.base.native import NativeServer, own_words
from agents.servers.base.process import parse_process
from agents.servers.base.server import Readiness
from agents.servers.postgresql import scripts as postgresql_scripts
from agents.servers.postgresql.configuration import HBA, OWN, QUERY, parse_postgresql, postgresql_conf
from agents.servers.postgresql.log import postgresql_problems

PREPARATION_S = 3600
"""How long initdb, a copy and the loading of data may take in all."""
CHECKPOINT_S = 900


def _switch(value: object) -> object:
    """YAML reads on and off as true and false."""
    return ("on" if value else "off") if isinstance(value, bool) else value


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}(?:\.[a-z][a-z0-9_]{0,62})?$")]
Value = Annotated[str, AS_TEXT, BeforeValidator(_switch), StringConstraints(max_length=1000)]


class PostgreSQL(NativeServer):
    """A PostgreSQL of the SUT with a data directory of the run: a new one, or a copy of one that is `prepared` there.

    `settings` are lines of postgresql.conf, such as `shared_buffers: 1GB`. The load logs in as `bench` to the database
    `bench`, without a password; that account owns its tables and is no superuser. A checkpoint comes before the
    load and after the warm-up.
    """

    title: ClassVar[str] = "PostgreSQL"
    rights: ClassVar[Rights] = Rights(
        "starts an installed PostgreSQL with settings that tune, with a data directory of its own",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files"),
        gates={
            "bin_dir": installed_home("bin_dir"),
            "prepared": installed_home("prepared"),
            "settings": Gate(
                "settings that name files, programs or libraries, or that are not known",
                lambda server: all(setting_is_harmless(POSTGRESQL, *pair) for pair in server.settings.items()),
            ),
            "sql": Gate("`sql` of its own: psql runs programs, too", lambda server: not server.sql),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("postgresql.",)

    kind: Literal["postgresql"] = "postgresql"
    port: int = Field(5432, ge=1, le=65535)
    bin_dir: Directory | Literal[""] = Field(
        "", description="Where postgres and initdb are. Empty: on the PATH, else the newest where packages put it."
    )
    settings: dict[Name, Value] = Field(
        default_factory=dict,
        max_length=200,
        description="Lines of postgresql.conf, such as shared_buffers: 1GB or synchronous_commit: off.",
    )
    prepared: Directory | Literal[""] = Field(
        "",
        description="A data directory of the SUT whose server was stopped: each run gets a copy of it, which takes no "
        "time on XFS and Btrfs.",
    )
    pgbench_scale: int | None = Field(
        None, ge=1, le=100_000, description="Fills the database with pgbench's tables: 100,000 rows, some 15 MB, each."
    )
    sql: str = Field("", max_length=256 * 1024, description="SQL that makes and fills tables, run as bench.")
    keep_data: bool = Field(
        False,
        description="Makes the data once, in ~/.benchhub/data of the SUT, and gives each run a copy; their checksum is "
        "part of what ran. Without it each run makes its data anew.",
    )
    checksums: bool = Field(False, description="A new data directory has checksums of its pages.")
    ready: Readiness = Readiness(probe="tcp")

    @model_validator(mode="after")
    def _makes_sense(self) -> PostgreSQL:
        for name, value in self.settings.items():
            if name in OWN:
                raise ValueError(f"settings: BenchHub sets {name} itself; see port and listen")
            own_words(name, value, "settings")
        if self.prepared and self.checksums:
            raise ValueError("checksums are made with a new data directory; the one that is prepared has them or not")
        if self.prepared and self.keep_data:
            raise ValueError("keep_data keeps what a run made; a prepared directory is kept already")
        return self

    def version_command(self) -> Command:
        scale = "" if self.pgbench_scale is None else str(self.pgbench_scale)
        return script(postgresql_scripts.VERSION, self.bin_dir, self.prepared, scale)

    def parse_version(self, output: bytes) -> str:
        """Its version number. PlanError when the prepared directory is of another one, ParseError without one."""
        text = output.decode("utf-8", "replace")
        match = re.search(r"^postgres \(PostgreSQL\) ((\d+)\S*)", text, re.MULTILINE)
        if match is None:
            raise ParseError("the program does not tell the version of a PostgreSQL")
        of = re.search(r"^prepared (\d+)", text, re.MULTILINE)
        if of is not None and of[1] != match[2]:
            raise PlanError(
                f"{self.prepared} is a data directory of PostgreSQL {of[1]}, and this is {match[1]}",
                hint="Set bin_dir to the version that made it, or prepare it anew.",
            )
        return match[1]

    def create_instance(self, instance: str) -> Command:
        """`postgresql.conf` and `pg_hba.conf`, which steps reach, and `data`, loaded, with its server stopped."""
        files = {"postgresql.conf": postgresql_conf(self.port, self.listen, self.settings), "pg_hba.conf": HBA}
        if self.sql:
            files["prepare.sql"] = f"{self.sql}\n"
        scale = "" if self.pgbench_scale is None else str(self.pgbench_scale)
        checksums = "--data-checksums" if self.checksums else ""
        args = (self.bin_dir, str(self.port), self.prepared, scale, checksums, "yes" if self.keep_data else "")
        return instance_with(instance, files, postgresql_scripts.CREATE, *args, timeout_s=PREPARATION_S)

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        """Ends as the postmaster itself, with its log on standard output."""
        return script(postgresql_scripts.START, self.bin_dir, instance)

    def ready_command(self, instance: str) -> Command | None:
        """A checkpoint: once it is done the server is ready, and the load does not begin with old work."""
        return script(postgresql_scripts.READY, self.bin_dir, instance, str(self.port), timeout_s=CHECKPOINT_S)

    def unready(self, result: CommandResult) -> str:
        if result.ok:
            return ""
        said = result.text.strip().splitlines()
        return f"PostgreSQL takes no checkpoint yet: {said[0][:200] if said else 'no answer'}"

    def settling_command(self, instance: str) -> Command | None:
        """A checkpoint: what the warm-up wrote is on the disk before load is measured."""
        return self.ready_command(instance)

    def effective_command(self, instance: str, pid: int) -> Command:
        args = (self.bin_dir, instance, str(self.port), str(pid), QUERY)
        return script(postgresql_scripts.EFFECTIVE, *args, timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`postgresql.settings.work_mem` as SHOW says it, `postgresql.pending_restart.NAME`, `process...`.

        `postgresql.data.sha256` is of data that are kept, `postgresql.data.state` of the directory that was prepared.
        """
        frames = parse_frames(output)
        origin = frames.get("data", b"").decode("utf-8", "replace").partition(" ")
        data = {f"postgresql.data.{origin[0]}": origin[2].strip()} if origin[2] else {}
        return {**parse_process(frames), **parse_postgresql(frames.get("settings", b"")), **data}

    def problems(self, log: str) -> tuple[str, ...]:
        return postgresql_problems(log)
