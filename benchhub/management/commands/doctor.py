"""Whether this installation has what it needs, and what to do where it has not."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from benchhub.doctor import findings
from benchhub.management.commands.up import port_number
from experiments.management import base

WIDTH = 12


class Command(base.Command):
    help = "Look at everything that this installation needs. Ends with 1 when something is wrong; advice is no fault."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=port_number, default=8000, help="port that the pages shall have (8000)")

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = 0
        for found in findings(options["port"]):
            wrong += found.level == "wrong"
            self.stdout.write(f"{found.level:<{WIDTH}}{found.what:<{WIDTH}}{found.sentence}")
        if wrong:
            self.stdout.write(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong.")
            sys.exit(1)
        self.stdout.write("Nothing is wrong.")
