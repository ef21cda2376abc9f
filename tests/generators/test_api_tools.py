"""The API's description in other people's tools: linted, and made into clients that compile and launch a run each."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from benchhub.embedded import PROJECT_DIR
from experiments.models import Member, Run, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.teams.tokens import issue
from tests import needs
from tests.experiments.conftest import WORKLOAD


@pytest.mark.generators
@pytest.mark.slow
def test_linters_are_content_and_the_clients_that_generators_make_launch_a_run(
    transactional_db: None,
    live_server: LiveServer,
    admin: Member,
    stock: dict[str, Any],
) -> None:
    needs.require_program("npm", "java", "go")
    save_version(admin, Workload, "home", WORKLOAD)
    _, token = issue(admin, name="generators", scopes=["read", "launch"])
    argv = [sys.executable, "-m", "bench.api_tools", live_server.url, token]
    done = subprocess.run(argv, cwd=PROJECT_DIR, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    launched = [line.partition(":")[0] for line in done.stdout.splitlines() if ": run #" in line]
    assert sorted(launched) == ["Go", "Python", "TypeScript"]
    assert Run.objects.filter(state="queued").count() == 3
