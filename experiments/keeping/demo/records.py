"""The demonstration's records: a team, two hosts, two experiments with a Tomcat, and a marked history."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import transaction

from agents.base.cpuset import format_cpus
from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.asking.library.install import install_recipe
from experiments.keeping.demo.history import make_history
from experiments.models import (
    Application,
    ConfigSnapshot,
    Experiment,
    HardwareProfile,
    Host,
    Member,
    Recipe,
    Role,
    Run,
    RunEvent,
    SampleSeries,
    Series,
    Team,
    Workload,
)
from experiments.registry.documents.versions import save_version
from experiments.registry.experiments.rules import Rules
from experiments.registry.hosts.own_hosts import OwnHost, keep_own_host
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record

TEAM, USER = "demo", "demo"
HELLO, PAGE = "/examples/servlets/servlet/HelloWorldExample", "/examples/jsp/index.html"
ON_ONE_MACHINE = {"neighbours_invalid_ratio": 1.0, "steal_invalid_ratio": 1.0}
"""In the demonstration BenchHub itself runs on the server's CPUs, and often in a small rented machine: that others took
CPU time is a warning there, and not the end of a run. Random blocks spread it over both variants."""
EXPERIMENT, NEXT = "Tomcat compression", "Tomcat baseline"
"""The one that runs by itself, and one that a person may launch when it has ended."""
UNTIL_CLEAR = Rules(stop_rule=Experiment.StopRule.UNTIL_CLEAR, max_blocks=8)
"""A verdict after five blocks where that is clear, and eight where the machine is noisy or a run of it is invalid."""
RECIPES = ("tomcat-default", "tomcat-access-log-off", "tomcat-threads-per-cpu")
COMPRESSION = {
    "description": "Tomcat packs its answers for clients that accept it (gzip): fewer bytes, more CPU.",
    "steps": [
        {
            "kind": "xml_edit",
            "path": "conf/server.xml",
            "edits": [
                {
                    "op": "set",
                    "select": "Service/Connector[@protocol='HTTP/1.1']",
                    "attributes": {"compression": "on"},
                }
            ],
        }
    ],
}


@dataclass(frozen=True)
class DemoMachine:
    """What the demonstration needs to know of the machine it runs on."""

    sut_address: str
    sut_port: int
    sut_host_key: str
    driver_address: str
    driver_port: int
    driver_host_key: str
    login_user: str
    private_key: str
    tomcat_home: str
    java_home: str | None
    server_port: int
    sut_cpus: str
    driver_cpus: str


@transaction.atomic
def seed(machine: DemoMachine, password: str) -> Experiment:
    """Make the demonstration's records; a second call changes only what the machine changed (ports, paths)."""
    member = _member(password)
    user, key = machine.login_user, machine.private_key
    sut = keep_own_host(
        member,
        OwnHost("sut", machine.sut_address, machine.sut_port, user, machine.sut_host_key, key, Host.Roles.SUT),
        is_demo=True,
    )
    driver = keep_own_host(
        member,
        OwnHost(
            "driver", machine.driver_address, machine.driver_port, user, machine.driver_host_key, key, Host.Roles.DRIVER
        ),
        is_demo=True,
    )
    application, default_recipe = _server(member, machine)
    existing: Experiment | None = (
        Experiment.objects.for_team(member.team).filter(name=EXPERIMENT).order_by("-id").first()
    )
    if existing is not None:
        return existing
    # Only the first time: a history that somebody deleted does not come back.
    make_history(member, sut=sut, driver=driver, application=application, recipe=default_recipe)

    def candidates(*others: Recipe) -> list[Candidate]:
        return [
            Candidate(recipe.name, application, recipe, sut, (driver,), is_baseline=recipe == default_recipe)
            for recipe in (default_recipe, *others)
        ]

    create_experiment(
        member,
        name=NEXT,
        question="What do the access log and the number of request threads cost?",
        workload=_workload(member, machine, "HelloWorld servlet, wrk", path=HELLO),
        candidates=candidates(*(install_recipe(member, name) for name in RECIPES[1:])),
        rules=UNTIL_CLEAR,
    )
    return create_experiment(
        member,
        name=EXPERIMENT,
        question="What does it cost the server to compress a page of 14 kB?",
        workload=_workload(member, machine, "Page of 14 kB, wrk", path=PAGE, headers={"Accept-Encoding": "gzip"}),
        candidates=candidates(save_version(member, Recipe, "Compression on", COMPRESSION)),
        rules=UNTIL_CLEAR,
    )


def start(experiment: Experiment) -> bool:
    """Launch the demonstration's experiment when it has not run yet; True when this call launched it."""
    if experiment.state != Experiment.State.DRAFT:
        return False
    member = Member.objects.select_related("team", "user").get(team=experiment.team, user__username=USER)
    launch_experiment(member, experiment)
    return True


def delete_demo(member: Member) -> int:
    """Delete the made-up history of the team, and nothing that really ran; returns the number of runs deleted."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        runs = Run.objects.for_team(member.team).filter(is_demo=True)
        fingerprints = list(runs.values_list("fingerprint", flat=True).distinct())
        profiles = list(runs.values_list("sut_profile_id", flat=True).distinct())
        configs = list(runs.values_list("config_id", flat=True).distinct())
        count = runs.count()
        Series.objects.for_team(member.team).filter(fingerprint__in=fingerprints).delete()
        for model in (RunEvent, SampleSeries):
            model._default_manager.filter(run__in=runs).delete()
        runs.delete()
        _delete_unused(member.team, profiles, configs)
        Workload.objects.for_team(member.team).filter(is_demo=True, runs=None, experiments=None).delete()
        record(member, "demo.delete", "demo history", before={"runs": count})
    return count


def _delete_unused(team: Team, profiles: list[int], configs: list[int]) -> None:
    used = Run.objects.filter(config_id__in=configs).values("config_id")
    ConfigSnapshot.objects.filter(team=team, pk__in=configs).exclude(pk__in=used).delete()
    seen = Run.objects.filter(sut_profile_id__in=profiles).values("sut_profile_id")
    HardwareProfile.objects.for_team(team).filter(pk__in=profiles, hosts=None).exclude(pk__in=seen).delete()


def _member(password: str) -> Member:
    team, _ = Team.objects.get_or_create(
        slug=TEAM, defaults={"name": "Demo", "is_demo": True, "thresholds": ON_ONE_MACHINE}
    )
    user, created = get_user_model().objects.get_or_create(
        username=USER, defaults={"email": "demo@localhost.invalid", "is_staff": True}
    )
    if created or not user.check_password(password):
        user.set_password(password)
        user.save()
    member, _ = Member.objects.get_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
    return member


def _server(member: Member, machine: DemoMachine) -> tuple[Application, Recipe]:
    application = save_version(
        member,
        Application,
        "Tomcat 11 examples",
        {
            "description": "Tomcat's own examples, opened to other hosts in a private instance of each run. "
            "Java's second compiler is off: it would take the server's CPU for longer than these short runs last.",
            "server": {
                "kind": "tomcat",
                "home": machine.tomcat_home,
                **({"java_home": machine.java_home} if machine.java_home else {}),
                "open_examples": True,
                "port": machine.server_port,
                "cpus": machine.sut_cpus,
                "jvm_options": ["-Xms256m", "-Xmx256m", "-XX:TieredStopAtLevel=1"],
                "ready": {
                    "path": HELLO,
                    "body_contains": "Hello World",
                    "timeout_s": 60,
                },
            },
        },
    )
    return application, install_recipe(member, RECIPES[0])


def _workload(
    member: Member, machine: DemoMachine, name: str, *, path: str, headers: dict[str, str] | None = None
) -> Workload:
    return save_version(
        member,
        Workload,
        name,
        {
            "description": "Closed loop, 32 connections: as many requests as the server answers.",
            "driver": {"kind": "wrk", "connections": 32, "threads": 1, "headers": headers or {}},
            "path": path,
            "phases": [
                {"name": "warm-up", "kind": "warm_up", "duration_s": 2},
                {"name": "measure", "kind": "measure", "duration_s": 6},
            ],
            "cpus": machine.driver_cpus,
        },
    )


def split_cpus(online: tuple[int, ...]) -> tuple[str, str]:
    """CPU sets for server and driver of one machine: halves; the same one CPU only when there is no second."""
    if len(online) < 2:
        return "", ""
    half = len(online) // 2
    return format_cpus(online[:half]), format_cpus(online[half:])
