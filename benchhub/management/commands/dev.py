"""`manage.py up` for developers: processes start again when the source changes, pages show what the files say."""

from __future__ import annotations

import importlib.util
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from benchhub import reloading, supervisor
from benchhub.management.commands import up
from benchhub.terminal import Terminal

USER, PASSWORD, TEAM, RUNS = "dev", "benchhub-dev", "dev", 500  # the password is for whoever sits at this machine


class Command(up.Command):
    help = "Start BenchHub for developers: every process starts again when its source changes. Ctrl-C stops all of it."

    def add_arguments(self, parser: CommandParser | ArgumentParser) -> None:
        super().add_arguments(parser)  # type: ignore[arg-type]
        parser.set_defaults(verbose=True)

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.BENCHHUB_EMBEDDED:
            raise CommandError("This runs a database of its own; unset DATABASE_URL and REDIS_URL.")
        if importlib.util.find_spec("watchfiles") is None:
            raise CommandError("The package watchfiles is not installed; bin/dev and bin/setup-env --checks do that.")
        super().handle(*args, **options)

    def children(self, port: int) -> tuple[supervisor.ChildSpec, ...]:
        return tuple(reloading.reloading(spec) for spec in super().children(port))

    def preparations(self) -> tuple[supervisor.ChildSpec, ...]:
        """Nothing is collected: static files are served from where they lie."""
        return tuple(spec for spec in super().preparations() if spec.name == "migrate")

    def prepared(self, terminal: Terminal) -> None:
        users = get_user_model().objects
        if not users.exists():
            terminal.say("dev", f"an account, and {RUNS} made-up runs to look at")
            users.create_superuser(USER, password=PASSWORD)
            call_command("seed_runs", RUNS, "--team", TEAM, "--admin", USER, stdout=terminal.output)

    def ready(self, terminal: Terminal, url: str) -> None:
        terminal.say("dev", f"BenchHub is ready: {url}  login {USER} / {PASSWORD}  (Ctrl-C stops it)")
