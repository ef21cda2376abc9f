#!/usr/bin/env python3
"""Django's command line: `manage.py up` starts BenchHub on this machine, `manage.py help` lists the rest."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchhub.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit("Django is not installed here: run bin/setup-env, then . .venv/bin/activate") from error
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
