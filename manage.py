#!/usr/bin/env python3
"""Django's command line: `manage.py up` starts BenchHub on this machine, `manage.py help` lists the rest.

What pip installs as the command `benchhub` is the same, and the demo with all that it needs.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent


def main() -> None:
    if sys.argv[1:2] == ["site-worker"]:  # it has no database, so Django and its settings are never loaded
        from agents.site.worker import main as work_for_a_site

        work_for_a_site(sys.argv[2:])
        return
    called = Path(sys.argv[0]).name
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchhub.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db import InterfaceError, OperationalError, ProgrammingError
        from psycopg.errors import UndefinedColumn, UndefinedTable

        from benchhub.embedded import EmbeddedError
    except ImportError as error:
        raise SystemExit("Django is not installed here: run bin/setup-env, then . .venv/bin/activate") from error
    if "--traceback" in sys.argv:  # what goes wrong outside BenchHub is said in one line; this shows where
        execute_from_command_line(sys.argv)
        return
    try:
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, EmbeddedError, OSError) as error:
        raise SystemExit(f"{called}: {error}") from error
    except (OperationalError, InterfaceError) as error:
        raise SystemExit(f"{called}: the database does not answer: {str(error).splitlines()[0]}") from error
    except ProgrammingError as error:
        if not isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
            raise
        raise SystemExit(
            f"{called}: the database is not prepared for this version: wait until `{called} up` says that BenchHub is "
            f"ready, or run `{called} migrate`"
        ) from error


def installed() -> None:
    """The command `benchhub`. The packages of BenchHub lie beside this file and nowhere else."""
    sys.path.insert(0, str(HOME))
    if sys.argv[1:] in (["--version"], ["version"]):
        print("benchhub", importlib.metadata.version("benchhub"))
    elif sys.argv[1:2] == ["demo"]:  # it looks for what the machine lacks before Django is loaded
        script = ["bash", str(HOME / "bin" / "demo"), *sys.argv[2:]]
        os.execvpe(script[0], script, {**os.environ, "BENCHHUB_PYTHON": sys.executable})  # noqa: S606
    else:
        main()


if __name__ == "__main__":
    main()
