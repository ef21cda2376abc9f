"""nginx, each run with a prefix of its own; the installation is only read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.base.installed import WHERE, installed, program
from agents.base.model import AS_TEXT
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.servers.base.directory import Directory
from agents.servers.base.files import instance_with
from agents.servers.base.frames import parse_frames
from agents.servers.base.native import NativeServer, Program
from agents.servers.base.process import parse_process
from agents.servers.base.proxying import WHERE_IT_LISTENS, Backend, listens_at
from agents.servers.nginx import scripts as nginx_scripts
from agents.servers.nginx.build import built_with, version_of
from agents.servers.nginx.configuration import directive_value, generated, settings_of
from agents.servers.nginx.log import nginx_problems

NOT_IN_CONF = ("daemon", "pid")
"""What BenchHub says on the command line: nginx refuses to be told twice."""


def _switch(value: object) -> object:
    """YAML reads on and off as true and false."""
    return ("on" if value else "off") if isinstance(value, bool) else value


PagePath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,9}$")
]
PageText = Annotated[str, StringConstraints(strip_whitespace=False, max_length=256 * 1024)]
Value = Annotated[str, AS_TEXT, BeforeValidator(_switch), StringConstraints(min_length=1, max_length=500)]


def _conf(text: str) -> str:
    if not text.strip():
        return ""
    try:
        paths = settings_of(text.replace(WHERE_IT_LISTENS, "here"))
    except ParseError as error:
        raise ValueError(str(error)) from None
    if twice := [name for name in NOT_IN_CONF if name in paths]:
        raise ValueError(f"leave {twice[0]} out of conf: BenchHub sets it, and nginx refuses to be told twice")
    if WHERE_IT_LISTENS not in text:
        raise ValueError(f"write `listen {WHERE_IT_LISTENS};` into conf: both are filled in for the run")
    return text


Conf = Annotated[str, StringConstraints(max_length=256 * 1024, strip_whitespace=False), AfterValidator(_conf)]


class Nginx(NativeServer):
    """An nginx of the SUT with `pages` (path -> text), with a directory of the SUT (`root`), or before `proxy_to`.

    `settings` are directives that tune, such as `sendfile: "on"`, each put into the block where it belongs. Without
    `worker_processes` there is a worker for each CPU that nginx may use. A `conf` of one's own takes the place of all.
    """

    title: ClassVar[str] = "nginx"
    rights: ClassVar[Rights] = Rights(
        "starts an installed nginx with static pages and directives that tune, in a prefix of its own",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files", "settings", "pages"),
        gates={
            "binary": program("nginx"),
            "root": Gate(f"a `root` that is not {WHERE}", lambda server: not server.root or installed(server.root)),
            "proxy_to": Gate("passing requests on to other servers", lambda server: not server.proxy_to),
            "conf": Gate("a `conf` of one's own", lambda server: not server.conf),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("nginx.",)

    kind: Literal["nginx"] = "nginx"
    binary: Program = "nginx"
    settings: dict[str, Value] = Field(
        default_factory=dict,
        max_length=100,
        description="Directives that tune, such as sendfile: on, keepalive_requests: 10000, worker_processes: 4.",
    )
    pages: dict[PagePath, PageText] = Field(
        default_factory=dict, max_length=100, description="Static files, such as index.html: hello."
    )
    root: Directory | Literal[""] = Field("", description="In place of pages: a directory of the SUT that is served.")
    proxy_to: tuple[Backend, ...] = Field(
        (), max_length=50, description="Servers that answer in its place, HOST:PORT, one per line."
    )
    proxy_keepalive: int = Field(64, ge=1, le=100_000, description="Idle connections to them that a worker keeps.")
    tls: bool = False
    """HTTPS with a self-signed key made for the run, in place of HTTP, on `port`."""
    reuse_port: bool = Field(False, description="Each worker listens with a socket of its own (reuseport).")
    backlog: int | None = Field(None, ge=1, le=1_000_000, description="Connections that may wait to be accepted.")
    stub_status: bool = Field(
        False, description="Serves nginx's own counters as /stub_status: without tls, charts of the run."
    )
    conf: Conf = Field("", description=f"A whole nginx.conf, with `listen {WHERE_IT_LISTENS};` in it.")

    @model_validator(mode="after")
    def _one_source(self) -> Nginx:
        for name, value in self.settings.items():
            directive_value(name, value)
        if self.root and self.pages:
            raise ValueError("give pages or root, not both")
        of_generated = ("settings", "proxy_to", "tls", "reuse_port", "backlog", "stub_status", "root")
        if self.conf and (both := [name for name in of_generated if getattr(self, name)]):
            raise ValueError(f"write what {both[0]} asks for into conf: a given conf is not changed")
        return self

    def version_command(self) -> Command:
        return script(nginx_scripts.VERSION, self.binary, self.root, "yes" if self.tls else "")

    def parse_version(self, output: bytes) -> str:
        """nginx's version number; ParseError when it tells none."""
        return version_of(output.decode("utf-8", "replace"))

    def create_instance(self, instance: str) -> Command:
        """`nginx.conf`, and `pages` in `html`: steps reach both."""
        files = {f"html/{path}": text for path, text in self.pages.items()}
        files["nginx.conf"] = self._nginx_conf()
        if self.stub_status and not self.tls:
            files["stub_status.at"] = f"{self.listen or '127.0.0.1'} {self.port}\n"
        return instance_with(
            instance, files, nginx_scripts.CREATE, self.binary, "yes" if self.tls else "", timeout_s=120
        )

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        """Ends as nginx's master process, with its error log on standard output."""
        return script(nginx_scripts.START, self.binary, instance, "" if self.conf else "own")

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(nginx_scripts.EFFECTIVE, self.binary, instance, str(pid), timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`nginx.conf.http.sendfile`, `nginx.modules.http_v2_module`, `nginx.version`, `nginx.workers`, `process...`.

        A configuration that is in another language, such as Lua inside it, is one text: `nginx.conf`.
        """
        frames = parse_frames(output)
        text = {name: frames.get(name, b"").decode("utf-8", "replace") for name in ("conf", "build", "workers")}
        flat = parse_process(frames)
        try:
            flat.update({f"nginx.conf.{path}": value for path, value in settings_of(text["conf"]).items()})
        except ParseError:
            flat["nginx.conf"] = text["conf"]
        try:
            flat.update({f"nginx.{path}": value for path, value in built_with(text["build"]).items()})
        except ParseError:
            pass  # a program of another name; what it is stands in server.version
        if re.fullmatch(r"[1-9]\d*", text["workers"].strip()):
            flat["nginx.workers"] = text["workers"].strip()
        return flat

    def problems(self, log: str) -> tuple[str, ...]:
        return nginx_problems(log)

    def _nginx_conf(self) -> str:
        where = listens_at(self.listen, self.port, "*")
        if self.conf:
            return self.conf.replace(WHERE_IT_LISTENS, where)
        words = [where, *(["ssl"] if self.tls else [])]
        words += [*(["reuseport"] if self.reuse_port else []), *([f"backlog={self.backlog}"] if self.backlog else [])]
        return generated(
            " ".join(words),
            self.settings,
            root=self.root or "html",
            proxy_to=self.proxy_to,
            keep=self.proxy_keepalive,
            tls=self.tls,
            status=self.stub_status,
        )
