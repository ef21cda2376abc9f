"""Starts all of BenchHub on this machine and keeps it running until Ctrl-C."""

from __future__ import annotations

import os
import socket
from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import Error, connection

from benchhub import embedded, static_files, supervisor, tables
from benchhub.terminal import Terminal
from experiments.management import base
from experiments.registry.teams.first_account import how_to_make_the_first_account


class Command(base.Command):
    help = "Start BenchHub on this machine: database, web, workers and schedule. Ctrl-C stops all of it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=port_number, default=8000, help="Port of the web pages on 127.0.0.1 (8000).")
        parser.add_argument("--verbose", action="store_true", help="Show the log lines of every process.")

    def handle(self, *args: Any, **options: Any) -> None:
        port: int = options["port"]
        data_dir = settings.BENCHHUB_DATA_DIR
        url = f"http://{supervisor.ADDRESS}:{port}/"
        if not os.environ.get("CSRF_TRUSTED_ORIGINS"):  # links in mails and invitations need the port as well
            os.environ.setdefault("BENCHHUB_URL", url.rstrip("/"))
        lock = supervisor.Lock(data_dir)
        other = lock.take(url)
        if other is not None:
            self.stdout.write(f"BenchHub is already running at {other.url} (process {other.pid}).")
            return
        specs = self.children(port)
        followed = [data_dir / "logs" / f"{spec.name}.log" for spec in specs] if options["verbose"] else []
        terminal = Terminal(followed=followed)
        boss = supervisor.Supervisor(data_dir, specs, terminal)
        boss.listen_to_signals()
        held: socket.socket | None = None
        try:
            held = supervisor.hold_port(port)
            if settings.BENCHHUB_EMBEDDED:
                terminal.say("up", f"PostgreSQL and Redis of its own, data in {data_dir}")
                embedded.ensure(data_dir)
            self.prepare(boss)
            if not boss.stopping:
                self.prepared(terminal)
            boss.start()
            boss.supervise(port, lambda: self.ready(terminal, url))
        except (supervisor.SupervisorError, embedded.EmbeddedError) as error:
            raise CommandError(str(error)) from error
        finally:
            boss.stop()
            if held is not None:
                held.close()
            self.stopped()
            _leave_services(data_dir)
        terminal.say("up", "stopped")

    def children(self, port: int) -> tuple[supervisor.ChildSpec, ...]:
        """The processes to run."""
        return supervisor.child_specs(port)

    def prepare(self, boss: supervisor.Supervisor) -> None:
        """Does what is to be done before they start, and was not done by an earlier start."""
        static = static_files.fingerprint()
        done = {"migrate": _has_all_tables(), "collectstatic": static_files.are_collected(static)}
        steps = [step for step in self.preparations() if not done[step.name]]
        if not steps:
            return
        boss.terminal.say("up", f"preparing: {', '.join(step.name for step in steps)}")
        boss.prepare(steps)
        if not boss.stopping and any(step.name == "collectstatic" for step in steps):
            static_files.note_collected(static)

    def preparations(self) -> tuple[supervisor.ChildSpec, ...]:
        """All that may be to do."""
        return supervisor.preparations()

    def prepared(self, terminal: Terminal) -> None:
        """Called when the database is ready and before any process starts."""

    def ready(self, terminal: Terminal, url: str) -> None:
        """Called once, when the web answers."""
        terminal.say("up", f"BenchHub is ready: {url}  (Ctrl-C stops it)")
        if command := _first_account():
            terminal.say("up", f"There is no account yet. In another terminal: {command}")

    def stopped(self) -> None:
        """Called when every process has ended, and before the database stops."""


def port_number(text: str) -> int:
    """A port that can be listened on."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ArgumentTypeError(f"{text!r} is no port; ports are 1 to 65535")
    return int(text)


def _has_all_tables() -> bool:
    try:
        return tables.are_complete()
    finally:
        connection.close()


def _first_account() -> str:
    """The command that makes it, or "": also when the database is away at this moment, which the pages say."""
    try:
        return how_to_make_the_first_account()
    except Error:
        return ""
    finally:
        connection.close()  # this process has nothing more to ask


def _leave_services(data_dir: Any) -> None:
    """Gives the embedded services up and, as nobody else uses them, waits until they have stopped."""
    embedded.release(data_dir)
    embedded.wait_while_unused(data_dir)
