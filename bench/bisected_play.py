"""The play of `bench.bisected`: hosts, documents, a worker, and a bisection until it is over."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

from benchhub.embedded import Places
from experiments.asking.bisections.answer import answer_of, markdown
from experiments.asking.bisections.live import start_bisection
from experiments.asking.bisections.plan import BisectionPlan
from experiments.models import Application, Bisection, Member, Recipe, Role, Run, Team, Workload
from experiments.registry.documents.versions import save_version
from tests.faults.stage import Stage, surroundings
from tests.sshd import running_sshd

MOST_S = 3600.0
BUILD = {"kind": "build", "tool": "make", "artefact": "app", "to": "app", "commit": "${commit}"}


@dataclass(frozen=True)
class Named:
    """What the bisection ended with; `function` is the first that it shows, "" for none."""

    first_bad: str | None
    function: str
    text: str


def bisected(folder: Path, repository: Path, commits: Sequence[str], *, load_s: int) -> tuple[Named, int]:
    """Bisect the commits with real runs on two hosts of this machine; the answer, and how many runs that took."""
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    user = get_user_model().objects.create_user("bench")
    member = Member.objects.create(team=Team.objects.create(slug="bench", name="Bench"), user=user, role=Role.ADMIN)
    environment = surroundings(
        f"postgresql://benchhub@/benchhub?host={Places(Path(settings.BENCHHUB_DATA_DIR)).sockets}",
        settings.REDIS_URL,
        data_dir=folder,
        key_file=Path(settings.BENCHHUB_KEY_FILE),
    )
    with contextlib.ExitStack() as running:
        stage = Stage(folder, member, environment)
        running.callback(stage.close)
        places = [folder / name for name in ("sut", "driver")]
        for place in places:
            place.mkdir()
        sut, driver = (
            stage.add_host(place.name, running.enter_context(running_sshd(place)), roles=place.name) for place in places
        )
        stage.start_worker("one", lease_s=30, heartbeat_s=5)
        stage.until_checked()
        choice = stage.choice(sut, driver)
        server = {"kind": "command", "argv": ["./app", str(sut.port)], "port": sut.port, "cpus": "0"}
        load = {
            "driver": {"kind": "wrk", "connections": 2, "threads": 1},
            "path": "/",
            "cpus": "1",
            "phases": [
                {"name": "warm-up", "kind": "warm_up", "duration_s": 1},
                {"name": "load", "kind": "measure", "duration_s": load_s},
            ],
            "profilers": ["perf"],
        }
        recipe = {
            "parameters": {"commit": {"type": "str"}},
            "steps": [{**BUILD, "repository": str(repository)}],
        }
        plan = BisectionPlan(
            name="Which commit, and which function?",
            application=save_version(member, Application, "shop", {"server": server}),
            recipe=save_version(member, Recipe, "a commit", recipe),
            workload=save_version(member, Workload, "one page", load),
            sut=choice.sut,
            drivers=choice.drivers,
            labels_in_order=commits,
            parameter="commit",
        )
        made = start_bisection(member, plan)
        stage.until(lambda: not Bisection.objects.filter(state="running").exists(), seconds=MOST_S)
        made.refresh_from_db()
        answer = answer_of(made)
        shown = answer.functions.shown if answer.functions else ()
        text = markdown(made, "bisection", answer)
        return Named(answer.first_bad, shown[0].name if shown else "", text), Run.objects.count()
