"""Starts the workers of a site on this machine and keeps them running until Ctrl-C."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import Error, connection

from benchhub import supervisor
from benchhub.environment import envint
from benchhub.terminal import Terminal
from experiments.management import base
from experiments.registry.errors import RequestError
from experiments.registry.hosts.sites import find_site


class Command(base.Command):
    help = (
        "Start the two workers of a site: one executes runs on its hosts, one tests connections to them and puts them "
        "back. They connect to the database and the broker and to the hosts; nothing connects to them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--site", default=settings.BENCHHUB_SITE, help="Its name (default: BENCHHUB_SITE).")
        parser.add_argument(
            "--runs",
            type=int,
            default=envint("BENCHHUB_RUNS", supervisor.RUNS_AT_ONCE),
            help="Runs at the same time (16).",
        )
        parser.add_argument("--verbose", action="store_true", help="Show the log lines of both.")

    def handle(self, *_arguments: Any, site: str, runs: int, verbose: bool, **_options: Any) -> None:
        self._check(site, runs)
        data_dir = settings.BENCHHUB_DATA_DIR
        specs = supervisor.site_specs(site, runs)
        logs = [data_dir / "logs" / f"{spec.name}.log" for spec in specs]
        terminal = Terminal(followed=logs if verbose else [])
        boss = supervisor.Supervisor(data_dir, specs, terminal)
        boss.listen_to_signals()
        terminal.say("worker", f"Workers of site {site}; logs in {logs[0].parent}  (Ctrl-C stops them)")
        try:
            boss.start()
            boss.supervise(None, lambda: None)
        finally:
            boss.stop()

    def _check(self, site: str, runs: int) -> None:
        if settings.BENCHHUB_EMBEDDED:
            raise CommandError("Set DATABASE_URL and REDIS_URL to those of the installation that the site belongs to.")
        if not site:
            raise CommandError("Say which site this is: --site berlin, or BENCHHUB_SITE.")
        if not 1 <= runs <= 1000:
            raise CommandError("--runs is from 1 to 1000.")
        try:
            found = find_site(site)
        except RequestError as error:
            raise CommandError(error.message) from error
        except Error as error:
            raise CommandError(f"The database does not answer: {str(error).strip()}") from error
        finally:
            connection.close()
        if found is not None and found.keys_stay:
            raise CommandError(
                f"The keys of site {site} stay there, and these workers would have none: start "
                f"`{settings.BENCHHUB_COMMAND} site-worker --site {site}` with its --url, --token-file and --keys."
            )
