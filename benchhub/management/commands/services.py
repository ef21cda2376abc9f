"""Starts, stops and shows the embedded PostgreSQL and Redis."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from benchhub import embedded
from experiments.management import base


class Command(base.Command):
    help = "The embedded PostgreSQL and Redis. They start by themselves when needed; `start` keeps them running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["start", "stop", "status"])

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.BENCHHUB_EMBEDDED:
            raise CommandError("DATABASE_URL and REDIS_URL are set: BenchHub does not run services of its own.")
        data_dir = settings.BENCHHUB_DATA_DIR
        try:
            if options["action"] == "start":
                embedded.ensure(data_dir)
                embedded.pin(data_dir)
            elif options["action"] == "stop":
                embedded.stop(data_dir)
        except embedded.EmbeddedError as error:
            raise CommandError(str(error)) from error
        self._show(data_dir)

    def _show(self, data_dir: Any) -> None:
        state = embedded.status(data_dir)
        if not state.running:
            self.stdout.write(f"stopped (data in {data_dir})")
            return
        until = f"until `{settings.BENCHHUB_COMMAND} services stop`" if state.pinned else "while somebody uses them"
        urls = embedded.urls(data_dir)
        self.stdout.write(f"running {until}, keeper process {state.keeper_pid}")
        self.stdout.write(f"PostgreSQL  {urls.database_url}\nRedis       {urls.redis_url}")
