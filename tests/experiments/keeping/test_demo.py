"""The demonstration's records: made once, started once, and a made-up history that goes without a trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.remote.address import new_key_pair
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.judging.comparing.history import metric_history, series_of
from experiments.keeping.demo.records import DemoMachine, delete_demo, seed, split_cpus, start
from experiments.models import Artifact, ConfigSnapshot, Experiment, Host, Member, Run, Series, Workload
from tests.experiments.finished import finish_next

KEYS = [new_key_pair(name) for name in ("sut", "driver", "login")]


@pytest.fixture
def machine() -> DemoMachine:
    return DemoMachine(
        sut_address="127.0.0.2",
        sut_port=20222,
        sut_host_key=" ".join(KEYS[0][1].split()[:2]),
        driver_address="127.0.0.3",
        driver_port=20322,
        driver_host_key=" ".join(KEYS[1][1].split()[:2]),
        login_user="bench",
        private_key=KEYS[2][0],
        tomcat_home="/opt/tomcat",
        java_home=None,
        server_port=8180,
        sut_cpus="0",
        driver_cpus="1",
    )


@pytest.fixture
def experiment(db: None, machine: DemoMachine) -> Experiment:
    return seed(machine, "benchhub-demo")


def member_of(experiment: Experiment) -> Member:
    return Member.objects.select_related("team", "user").get(team=experiment.team)


def test_the_demonstration_is_made_once(experiment: Experiment, machine: DemoMachine) -> None:
    runs, hosts = Run.objects.count(), list(Host.objects.values_list("state", "is_demo"))
    assert hosts == [("ready", True)] * 2
    assert runs > 50
    assert seed(machine, "benchhub-demo") == experiment
    assert (Run.objects.count(), Workload.objects.count()) == (runs, 3)
    assert [variant.name for variant in experiment.variants.all()] == ["Tomcat default", "Compression on"]
    (other,) = Experiment.objects.exclude(pk=experiment.pk)
    of_the_other = ["Tomcat default", "Access log off", "Request threads = CPUs"]
    assert [variant.name for variant in other.variants.all()] == of_the_other


def test_a_machine_that_changed_is_taken_over(experiment: Experiment, machine: DemoMachine) -> None:
    key = " ".join(KEYS[2][1].split()[:2])
    seed(replace(machine, sut_port=20999, sut_host_key=key), "benchhub-demo")
    sut = Host.objects.get(name="sut")
    assert (sut.port, sut.host_key, sut.state) == (20999, key, "ready")


def test_it_starts_by_itself_and_only_once(experiment: Experiment) -> None:
    assert start(experiment)
    assert experiment.runs.count() == 10
    assert not start(Experiment.objects.get(pk=experiment.pk))


def test_the_history_shows_its_change_and_says_that_it_is_made_up(experiment: Experiment) -> None:
    (series,) = series_of(experiment.team)
    points = metric_history(experiment.team, series.fingerprint, "throughput_rps").points
    assert len(points) == Run.objects.filter(is_demo=True).count()
    first, last = [point.value for point in points[:20]], [point.value for point in points[-10:]]
    assert sum(last) / 10 < 0.95 * sum(first) / 20
    assert all("Made-up" in run.notes and run.tags == ["demo"] for run in Run.objects.filter(is_demo=True))


def test_deleting_the_history_leaves_what_really_ran_and_it_does_not_come_back(
    experiment: Experiment, machine: DemoMachine
) -> None:
    member, made_up = member_of(experiment), Run.objects.filter(is_demo=True).count()
    variant = experiment.variants.get(is_baseline=True)
    parts = {name: getattr(variant, name) for name in ("application", "recipe", "sut")}
    Host.objects.update(profile=None)
    launch_run(member, Choice(**parts, drivers=variant.drivers.in_order, workload=experiment.workload))
    real = finish_next()
    assert delete_demo(member) == made_up
    assert list(Run.objects.all()) == [real]
    assert [series.fingerprint for series in Series.objects.all()] == [real.fingerprint]
    assert list(ConfigSnapshot.objects.all()) == [real.config]
    assert Artifact.objects.filter(run=real).exists()
    real.refresh_from_db()
    assert real.sut_profile is not None
    assert delete_demo(member) == 0
    assert seed(machine, "benchhub-demo") == experiment
    assert list(Run.objects.all()) == [real]


@pytest.mark.parametrize(
    "online, halves",
    [((), ("", "")), ((3,), ("", "")), ((0, 1), ("0", "1")), ((0, 1, 2, 5, 6), ("0-1", "2,5-6"))],
)
def test_server_and_load_get_halves_of_the_machine(online: tuple[int, ...], halves: tuple[str, str]) -> None:
    assert split_cpus(online) == halves
