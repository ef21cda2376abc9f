"""HAProxy, each run in a directory of its own; the installation is only read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.base.installed import program
from agents.base.model import AS_TEXT
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.servers.base.files import instance_with
from agents.servers.base.frames import parse_frames
from agents.servers.base.native import NativeServer, Program
from agents.servers.base.process import parse_process
from agents.servers.base.proxying import WHERE_IT_LISTENS, Backend, listens_at
from agents.servers.haproxy import scripts as haproxy_scripts
from agents.servers.haproxy.configuration import built_with, generated, keyword_value, settings_of, version_of
from agents.servers.haproxy.log import haproxy_problems


def _conf(text: str) -> str:
    if not text.strip():
        return ""
    try:
        paths = settings_of(text)
    except ParseError as error:
        raise ValueError(str(error)) from None
    if "global.daemon" in paths:
        raise ValueError("leave daemon out of conf: the server stays in the foreground, so that it is seen to end")
    if WHERE_IT_LISTENS not in text:
        raise ValueError(f"write `bind {WHERE_IT_LISTENS}` into conf: both are filled in for the run")
    return text if text.endswith("\n") else f"{text}\n"


Value = Annotated[str, AS_TEXT, StringConstraints(max_length=200)]
Conf = Annotated[str, StringConstraints(max_length=256 * 1024, strip_whitespace=False), AfterValidator(_conf)]


class HAProxy(NativeServer):
    """An HAProxy of the SUT before the servers in `proxy_to`; without any it answers each request itself with `ok`.

    `settings` are keywords that tune, such as `nbthread: 4` or `timeout client: 30s`, each put into the section where
    it belongs. A `conf` of one's own takes the place of all.
    """

    title: ClassVar[str] = "HAProxy"
    rights: ClassVar[Rights] = Rights(
        "starts an installed HAProxy with keywords that tune, in a directory of its own",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files", "settings"),
        gates={
            "binary": program("haproxy"),
            "proxy_to": Gate("passing requests on to other servers", lambda server: not server.proxy_to),
            "conf": Gate("a `conf` of one's own", lambda server: not server.conf),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("haproxy.",)

    kind: Literal["haproxy"] = "haproxy"
    binary: Program = "haproxy"
    proxy_to: tuple[Backend, ...] = Field(
        (), max_length=50, description="Servers that answer in its place, HOST:PORT, one per line."
    )
    mode: Literal["http", "tcp"] = Field("http", description="Whether it reads requests, or passes bytes on.")
    settings: dict[str, Value] = Field(
        default_factory=dict,
        max_length=100,
        description="Keywords that tune, such as nbthread: 4, maxconn: 20000, balance: leastconn, timeout client: 30s.",
    )
    tls: bool = False
    """HTTPS with a self-signed key made for the run, in place of HTTP, on `port`."""
    conf: Conf = Field("", description=f"A whole haproxy.cfg, with `bind {WHERE_IT_LISTENS}` in it.")

    @model_validator(mode="after")
    def _one_source(self) -> HAProxy:
        for name, value in self.settings.items():
            keyword_value(name, value)
        if self.mode == "tcp" and not (self.proxy_to or self.conf):
            raise ValueError("mode tcp passes bytes on to others: name them in proxy_to")
        if self.conf and (both := [name for name in ("settings", "proxy_to", "tls") if getattr(self, name)]):
            raise ValueError(f"write what {both[0]} asks for into conf: a given conf is not changed")
        return self

    def version_command(self) -> Command:
        return script(haproxy_scripts.VERSION, self.binary, "yes" if self.tls else "")

    def parse_version(self, output: bytes) -> str:
        """HAProxy's version number; ParseError when it tells none."""
        return version_of(output.decode("utf-8", "replace"))

    def create_instance(self, instance: str) -> Command:
        """`haproxy.cfg`: steps reach it before the start."""
        where = listens_at(self.listen, self.port, "*")
        text = generated(where, self.mode, self.settings, self.proxy_to, tls=self.tls)
        files = {"haproxy.cfg": self.conf.replace(WHERE_IT_LISTENS, where) if self.conf else text}
        return instance_with(instance, files, haproxy_scripts.CREATE, "yes" if self.tls else "")

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        return script(haproxy_scripts.START, self.binary, instance)

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(haproxy_scripts.EFFECTIVE, self.binary, instance, str(pid), timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`haproxy.conf.defaults.timeout client`, `haproxy.version`, `haproxy.features`, `process.threads`."""
        frames = parse_frames(output)
        text = {name: frames.get(name, b"").decode("utf-8", "replace") for name in ("conf", "build")}
        flat = parse_process(frames)
        flat.update({f"haproxy.conf.{path}": value for path, value in settings_of(text["conf"]).items()})
        try:
            flat.update({f"haproxy.{path}": value for path, value in built_with(text["build"]).items()})
        except ParseError:
            pass  # a program of another name; what it is stands in server.version
        return flat

    def problems(self, log: str) -> tuple[str, ...]:
        return haproxy_problems(log)
