"""Redis or Valkey, each run in a directory of its own; the installation is only read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from agents.base.command import Command, CommandResult, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import program
from agents.base.model import AS_TEXT
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.formats.tuning_settings import REDIS, setting_is_harmless
from agents.servers.base.files import instance_with
from agents.servers.base.frames import parse_frames
from agents.servers.base.native import NativeServer, Program, own_words
from agents.servers.base.process import parse_process
from agents.servers.base.server import Readiness
from agents.servers.redis import scripts as redis_scripts
from agents.servers.redis.configuration import OWN, parse_redis, redis_conf
from agents.servers.redis.log import redis_problems

LOOPBACK = "127.0.0.1"
FIRST_WITH_ACCOUNTS = 6


def _switch(value: object) -> object:
    """YAML reads yes and no as true and false."""
    return ("yes" if value else "no") if isinstance(value, bool) else value


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,99}$")]
Value = Annotated[str, AS_TEXT, BeforeValidator(_switch), StringConstraints(max_length=1000)]


class Redis(NativeServer):
    """A Redis or Valkey of the SUT (6.0 or later), empty, with its data in the directory of the run.

    `settings` are lines of redis.conf, such as `io-threads: 4`. Whoever reaches the port may read, write and flush data
    without a password; commands that write files, load modules or change settings are kept from them.
    """

    title: ClassVar[str] = "Redis"
    rights: ClassVar[Rights] = Rights(
        "starts an installed Redis or Valkey with settings that tune, in a directory of its own",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files"),
        gates={
            "binary": program("redis-server", "valkey-server"),
            "settings": Gate(
                "settings that name files, addresses or accounts, or that are not known",
                lambda server: all(setting_is_harmless(REDIS, *pair) for pair in server.settings.items()),
            ),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("redis.",)

    kind: Literal["redis"] = "redis"
    port: int = Field(6379, ge=1, le=65535)
    binary: Program = Field("redis-server", description="redis-server or valkey-server, or where it is.")
    persistence: Literal["none", "snapshots", "append_only"] = Field(
        "none", description="What it writes to disk: nothing, Redis' usual snapshots, or each change (append_only)."
    )
    settings: dict[Name, Value] = Field(
        default_factory=dict,
        max_length=100,
        description="Lines of redis.conf, such as io-threads: 4, appendfsync: always or maxmemory: 1gb.",
    )
    ready: Readiness = Readiness(probe="tcp")

    @model_validator(mode="after")
    def _settings_of_its_own(self) -> Redis:
        for name, value in self.settings.items():
            if name in OWN:
                raise ValueError(f"settings: BenchHub sets {name} itself; see port, listen and persistence")
            own_words(name, value, "settings")
        return self

    def version_command(self) -> Command:
        return script(redis_scripts.VERSION, self.binary)

    def parse_version(self, output: bytes) -> str:
        """Its version number. PlanError when it is too old to have accounts, ParseError when it tells none."""
        match = re.search(r"\bserver v=((\d+)\.\S+)", output.decode("utf-8", "replace"))
        if match is None:
            raise ParseError(f"{self.binary} does not tell the version of a Redis or Valkey")
        if int(match[2]) < FIRST_WITH_ACCOUNTS:
            raise PlanError(
                f"this Redis is {match[1]}: without accounts, whoever reaches its port could write files of the host",
                hint="Install Redis 6.0 or later, or Valkey.",
            )
        return match[1]

    def create_instance(self, instance: str) -> Command:
        """`redis.conf`: steps reach it before the start."""
        files = {"redis.conf": redis_conf(self.port, self.listen, self.persistence, self.settings)}
        asked_at = self.listen or LOOPBACK
        return instance_with(instance, files, redis_scripts.CREATE, self.binary, asked_at, str(self.port))

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        return script(redis_scripts.START, self.binary, instance)

    def ready_command(self, instance: str) -> Command | None:
        return script(redis_scripts.READY, instance)

    def unready(self, result: CommandResult) -> str:
        """While it loads data, the port is open already."""
        lines = result.text.split("\r\n")
        if "+PONG" in lines:
            return ""
        refused = next((line for line in lines if line.startswith("-")), result.text.strip().splitlines()[-1:] or "")
        return f"Redis did not answer PING: {''.join(refused).lstrip('-')[:200]}".rstrip(": ")

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(redis_scripts.EFFECTIVE, instance, str(pid), timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`redis.settings.maxmemory` as CONFIG GET says it, `redis.build.mem_allocator`, `process...`."""
        frames = parse_frames(output)
        return {**parse_process(frames), **parse_redis(frames.get("answers", b""))}

    def problems(self, log: str) -> tuple[str, ...]:
        return redis_problems(log)
