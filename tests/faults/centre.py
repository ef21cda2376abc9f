"""The centre as workers of a site see it: a real web server, a token for their site, and a link that can be cut."""

from __future__ import annotations

import contextlib
import secrets
import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from django.conf import settings
from django.contrib.auth import get_user_model

from benchhub.processes import wait_until
from experiments.models import Member, Role, Site
from experiments.registry.hosts.sites import add_site
from experiments.registry.teams.tokens import issue_for_site
from tests.agents.run_lab import free_port
from tests.faults.nursery import process_from_nursery

READY_S = 300.0


class CuttableLink:
    """Forwards TCP connections from a port of its own to another one, until it is cut."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._is_cut = False
        self._said = b""
        self._pairs: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """From now on connections end, and new ones get no answer."""
        self._is_cut = True
        for one in list(self._pairs):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def answer_instead(self, status: str, text: str) -> None:
        """From now on connections end, and new ones get this, as of a proxy that has nobody behind it."""
        self._said = f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode()
        self.cut()

    def heal(self) -> None:
        self._is_cut, self._said = False, b""

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(near,), daemon=True).start()

    def _forward(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            if self._is_cut:
                if said := self._said:
                    near.recv(65_536)
                    near.sendall(said)
                    near.shutdown(socket.SHUT_WR)
                    while near.recv(65_536):
                        pass
                return
            with socket.create_connection(("127.0.0.1", self._target)) as far:
                self._pairs |= {near, far}
                try:
                    _shovel(near, far)
                finally:
                    self._pairs -= {near, far}


def _shovel(near: socket.socket, far: socket.socket) -> None:
    other = {near: far, far: near}
    with selectors.DefaultSelector() as selector:
        for one in other:
            selector.register(one, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                source = key.fileobj
                assert isinstance(source, socket.socket)
                data = source.recv(65_536)
                if not data:
                    return
                other[source].sendall(data)


class Centre:
    """A web server on the stage's database. The site's files (token, keys, state) lie in a folder of it."""

    def __init__(self, folder: Path, member: Member, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._given = environment  # the same object: a test may still say more
        self._port = free_port()
        self._web: subprocess.Popen[bytes] | None = None
        self._times: dict[str, int] = {}
        self.link = CuttableLink(self._port)
        self.site: Site = add_site(f"lab-{secrets.token_hex(3)}", keys_stay=True)
        self.keys = folder / "keys"
        self.keys.mkdir()
        # Of its own: others' accounts may be closed in a play, and a play may have several centres.
        user = get_user_model().objects.create_user(f"operator of {self.site.name}")
        operator = Member.objects.create(team=member.team, user=user, role=Role.ADMIN)
        _, text = issue_for_site(operator, self.site, name="the site's worker")
        self.token_file = folder / "token"
        self.token_file.write_text(text)

    @property
    def _environment(self) -> dict[str, str]:
        return {
            **self._given,
            "BENCHHUB_HTTPS": "0",
            "DATABASE_POOL_SIZE": "10",
            "SECRET_KEY_FALLBACKS": settings.SECRET_KEY,  # by which this process makes the token
        }

    def keep_key(self, host: str, private_key: str) -> None:
        """Give the site's workers the key for a host; the database never sees it."""
        path = self.keys / host
        path.touch(mode=0o600)
        path.write_text(private_key)

    def start(self, lease_s: int, heartbeat_s: int) -> None:
        """Start the web server, unless it is there: it is who says how long leases last."""
        if self._web is None:
            self._times = {"BENCHHUB_LEASE_S": lease_s, "BENCHHUB_HEARTBEAT_S": heartbeat_s}
            self._start()

    def restart(self) -> None:
        """Kill the web server, and start it again."""
        assert self._web is not None
        self._web.kill()
        self._web.wait()
        self._start()

    def start_worker(self, name: str, log: Path, *, slots: int, preload: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A site-worker with a state directory of its name. `preload` as `tests.clocks` makes it."""
        arguments, environment = self.arguments(name, slots=slots), {**self._environment, **preload}
        return process_from_nursery("agents.site", arguments, environment, log, Path(settings.BASE_DIR))

    def arguments(self, name: str, *, slots: int) -> list[str]:
        given = {
            "--url": f"http://localhost:{self.link.port}",
            "--token-file": str(self.token_file),
            "--site": self.site.name,
            "--keys": str(self.keys),
            "--state": str(self.folder / f"state-{name}"),
            "--slots": str(slots),
        }
        return [word for pair in given.items() for word in pair]

    def close(self) -> None:
        self.link.close()
        if self._web is not None and self._web.poll() is None:
            self._web.send_signal(signal.SIGKILL)
            self._web.wait()

    def _start(self) -> None:
        self._web = process_from_nursery(
            "benchhub.web",
            ["--port", str(self._port)],
            self._environment,
            self.folder / "web.log",
            Path(settings.BASE_DIR),
            self._times,
        )
        if not wait_until(self._answers, seconds=READY_S):
            raise AssertionError((self.folder / "web.log").read_text())

    def _answers(self) -> bool:
        try:
            with urlopen(f"http://localhost:{self._port}/healthz", timeout=60):
                return True
        except HTTPError:
            return True
        except (URLError, OSError):
            return False
