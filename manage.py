#!/usr/bin/env python3
"""Django's command line: `manage.py up` starts BenchHub on this machine, `manage.py help` lists the rest."""

from __future__ import annotations

import os
import sys


def main() -> None:
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
        raise SystemExit(f"manage.py: {error}") from error
    except (OperationalError, InterfaceError) as error:
        raise SystemExit(f"manage.py: the database does not answer: {str(error).splitlines()[0]}") from error
    except ProgrammingError as error:
        if not isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
            raise
        raise SystemExit(
            "manage.py: the database is not prepared for this version: wait until `manage.py up` says that BenchHub is "
            "ready, or run `manage.py migrate`"
        ) from error


if __name__ == "__main__":
    main()
