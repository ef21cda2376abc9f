"""Playing cases in a process that has a PostgreSQL and a Redis of its own, and may break them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from django.conf import settings

from benchhub import embedded
from tests.faults.stage import HOST_NETWORKS, WORKERS


@contextlib.contextmanager
def playing(module: str, folder: Path) -> Iterator[Callable[[str], str]]:
    """Gives what plays a case of this module by its name and answers "", or what went wrong."""
    # Not below pytest's temporary directory: that one is closed to the account that PostgreSQL needs under root.
    data_dir = Path(tempfile.mkdtemp(prefix="benchhub-"))
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}
    variables = {
        **plain,
        "DJANGO_SETTINGS_MODULE": "benchhub.settings",
        "BENCHHUB_DATA_DIR": str(data_dir),
        "BENCHHUB_HOST_NETWORKS": HOST_NETWORKS,
        WORKERS: os.environ.get(WORKERS, ""),
    }
    command = [sys.executable, "-m", module, str(folder)]
    with subprocess.Popen(
        command, env=variables, cwd=settings.BASE_DIR, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as player:
        asked, answers = player.stdin, player.stdout
        assert asked is not None
        assert answers is not None

        def play(case: str) -> str:
            print(case, file=asked, flush=True)
            return str(json.loads(answers.readline()))

        yield play
        asked.close()
        player.wait()
    embedded.stop(data_dir)
    shutil.rmtree(data_dir)
