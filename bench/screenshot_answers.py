"""Made-up answers for the pictures: a rate search, a scaling measurement, a sweep, a bisection, a tuning.

Every one is launched and concluded by the product's own code; only the figures of the runs are made up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

import bench.django_project  # noqa: F401 - before the models
from agents.profiles.base.taken import TakenProfile
from bench.made_up_profiles import cost_ratio, made_up_profile
from experiments.analysis.findings import Finding
from experiments.asking.bisections.live import start_bisection
from experiments.asking.bisections.plan import BisectionPlan
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.asking.library.install import install_recipe
from experiments.asking.searches.live import start_search
from experiments.asking.tunings.live import start_tuning
from experiments.asking.tunings.plan import LimitWanted, TuningPlan
from experiments.judging.evidence.roles import CHECK, limit_of_runs
from experiments.keeping.demo.made_up import made_up_metrics
from experiments.models import Application, CapacitySearch, Experiment, Host, Member, Recipe, Run, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.runs.run_profiles import store_run_profile
from experiments.registry.runs.summary import summarise
from experiments.running.ending.conclusion import conclude_experiment, run_ended

SEED = 20250811
SUT, DRIVER, RECIPE = "seed-sut-x86-a", "seed-driver-1", "Request threads"
BASELINE, SCALING, WEEKLY = "release 4.2", "CPU scaling of Tomcat 11", "Weekly scaling"
SWEEP = "Executor sweep"
PROFILED = "A new JSON parser"
SLOWER_FROM = 5
"""The version of the bisected recipe from which on it is slower."""
CAPACITY_RPS = 21_300.0
FINDINGS = [
    asdict(Finding(check, "ok", sentence, {}, "made up"))
    for check, sentence in (
        ("errors", "No request failed."),
        ("steady_state", "The rate was steady while it was measured."),
        ("driver_cpu", "The load tool had CPU to spare: 61 % busy."),
        ("neighbours", "Nothing else was busy on the SUT."),
    )
]
SERVES_RPS: Mapping[int, float] = {1: 6_100, 2: 11_900, 4: 22_600, 8: 40_300, 16: 61_000, 32: 74_500}
"""Requests/s by CPUs of the scaling experiment."""

SHOP = "Shop: nginx before PostgreSQL"
SHOP_DOCUMENT = {
    "role": "web",
    "server": {"kind": "nginx", "proxy_to": ["${database.address}:${database.port}"]},
    "members": [{"role": "database", "server": {"kind": "postgresql", "port": 5432}}],
}
SHOP_RECIPE = {
    "parameters": {"shared_buffers_mib": {"type": "int", "default": 128}},
    "steps": [
        {
            "kind": "properties",
            "path": "postgresql.conf",
            "separator": "=",
            "values": {"shared_buffers": "${shared_buffers_mib}MB"},
            "on": "database",
        }
    ],
}
SHOP_SERVES_RPS: Mapping[int, float] = {128: 8_200, 1024: 13_900}
SHOP_BUSY: Mapping[int, tuple[float, float]] = {128: (0.40, 0.98), 1024: (0.93, 0.61)}
"""How busy web server and database were, by the database's buffers."""


class Answers:
    """One team; every method makes what one page shows. `few`: one of each kind, with as few runs as will do."""

    def __init__(self, member: Member, *, few: bool = False) -> None:
        self.member, self.team, self.few = member, member.team, few
        self.random = np.random.default_rng(SEED)
        Host.objects.for_team(self.team).update(state=Host.State.READY, state_reason="")
        hosts = Host.objects.for_team(self.team).select_related("profile")
        self.sut, self.driver = hosts.get(name=SUT), hosts.get(name=DRIVER)
        self.application = Application.objects.for_team(self.team).get(name="Seeded: Tomcat 11")
        self.workload = Workload.objects.for_team(self.team).get(name="Seeded: HelloWorld, 32 connections")

    def documents(self) -> None:
        """A recipe in eight versions, and a workload at a rate."""
        self.tuned = install_recipe(self.member, "tomcat-request-threads")
        self.first_version = self.tuned.version
        for threads in (8, 16, 24, 32, 4, 5, 6):
            body = self.tuned.body | {
                "parameters": self.tuned.body["parameters"]
                | {"request_threads": self.tuned.body["parameters"]["request_threads"] | {"default": threads}}
            }
            self.tuned = save_version(self.member, Recipe, self.tuned.name, body, note=f"{threads} request threads")
        self.at_a_rate = save_version(
            self.member,
            Workload,
            "REST read at a rate, wrk2",
            {
                "description": "Requests are due at fixed times; latency counts from then.",
                "driver": {"kind": "wrk2", "connections": 128, "threads": 8, "offered_rate_rps": 10_000},
                "path": "/examples/",
                "phases": [
                    {"name": "warm-up", "kind": "warm_up", "duration_s": 15},
                    {"name": "measure", "kind": "measure", "duration_s": 60},
                ],
            },
        )

    def capacity(self) -> None:
        """A search that came to its answer, and one that is under way."""
        choice = Choice(self.application, self.tuned, self.at_a_rate, self.sut, (self.driver,))
        bounds = {"objective_metric": "latency_p99_ms", "objective_ms": 50.0, "low_rps": 8_000.0, "high_rps": 40_000.0}
        found = start_search(self.member, choice, name="REST read: what it sustains", **bounds)  # type: ignore[arg-type]
        while found.state == CapacitySearch.State.RUNNING:
            self._end_trial(found)
            if self.few:
                return
        open_one = start_search(self.member, choice, name="The same with 4 request threads", **bounds)  # type: ignore[arg-type]
        for _ in range(4):
            self._end_trial(open_one)

    def scaling(self) -> None:
        recipe = install_recipe(self.member, "server-cpu-set")
        experiment = create_experiment(
            self.member,
            name=SCALING,
            question="How does throughput grow with the CPUs that one server may use?",
            workload=self.workload,
            candidates=[
                self._candidate(f"{cpus} CPU{'s' * (cpus > 1)}", recipe, {"cpus": _range(cpus)}, is_baseline=cpus == 1)
                for cpus in tuple(SERVES_RPS)[: 3 if self.few else None]
            ],
            repetitions=1 if self.few else 4,
        )
        self._run_out(experiment, lambda run: SERVES_RPS[_cpus(run)], cpus=_cpus)

    def system(self) -> None:
        """A web server before a database, whose buffers are made larger: the limit moves from one to the other."""
        application = save_version(self.member, Application, SHOP, SHOP_DOCUMENT)
        recipe = save_version(self.member, Recipe, "Shop: shared buffers", SHOP_RECIPE)
        database = Host.objects.for_team(self.team).exclude(pk__in=[self.sut.pk, self.driver.pk]).order_by("pk")[0]
        experiment = create_experiment(
            self.member,
            name="Shop: buffers of the database",
            question="Which member is the limit, and does it stay so with larger buffers?",
            workload=self.workload,
            candidates=[
                Candidate(
                    f"{mib} MiB",
                    application,
                    recipe,
                    self.sut,
                    (self.driver,),
                    {"shared_buffers_mib": mib},
                    mib == 128,
                    members={"database": database},
                )
                for mib in SHOP_SERVES_RPS
            ],
            repetitions=1 if self.few else 5,
        )
        self._run_out(experiment, lambda run: SHOP_SERVES_RPS[_buffers(run)], members=SHOP_BUSY)

    def sweep(self) -> None:
        """Three factors, so that the page draws parallel coordinates."""
        recipe = install_recipe(self.member, "tomcat-nio-executor")
        chosen = [(t, c, a) for t in (100, 200, 400) for c in (400, 800) for a in (100, 600)]
        experiment = create_experiment(
            self.member,
            name=SWEEP,
            question="Which numbers of threads, connections and waiting requests are best?",
            workload=self.workload,
            candidates=[
                self._candidate(
                    f"{t} threads, {c} connections, {a} waiting",
                    recipe,
                    {"max_threads": t, "min_spare_threads": min(t, 100), "max_connections": c, "accept_count": a},
                    is_baseline=at == 0,
                )
                for at, (t, c, a) in enumerate(chosen)
            ],
            repetitions=5,
        )

        def speed_rps(run: Run) -> float:
            given = _recipe(run)["parameters"]
            return float(
                24_000
                * {100: 1.0, 200: 1.09, 400: 1.05}[given["max_threads"]]
                * {400: 1.0, 800: 1.03}[given["max_connections"]]
                * {100: 1.0, 600: 0.99}[given["accept_count"]]
            )

        self._run_out(experiment, speed_rps)

    def profiled(self) -> None:
        """Two variants with a profile of each run: one function vanished, a costlier one came."""
        experiment = create_experiment(
            self.member,
            name=PROFILED,
            question="What does the new parser cost?",
            workload=self.workload,
            candidates=[
                self._candidate(name, self.tuned, {"request_threads": threads}, is_baseline=threads == 24)
                for name, threads in (("old parser", 24), ("new parser", 25))
            ],
            repetitions=5 if self.few else 8,
        )

        def changed(run: Run) -> bool:
            return bool(_recipe(run)["parameters"]["request_threads"] == 25)

        self._run_out(experiment, lambda run: 24_000 / cost_ratio(changed=changed(run)))
        for run in experiment.runs.order_by("number"):
            requests = round(60 * (run.throughput_rps or 0.0))
            cost_us = 150 * cost_ratio(changed=changed(run)) * math.exp(self.random.normal(0, 0.01))
            taken = TakenProfile(
                "async-profiler", event="cpu", engine="perf_events", window_s=(2.0, 58.0), requests=requests
            )
            profile = made_up_profile(self.random, changed=changed(run))
            store_run_profile(run, profile, replace(taken, cpu_time_s=cost_us * requests / 1e6))

    def bisection(self) -> None:
        """One that found the first bad version, and one that looks for it."""
        versions = [str(self.first_version + at) for at in range(8)]
        for name, is_over in (("Slower since the last release", True), ("Tail latency of the same versions", False)):
            plan = BisectionPlan(
                name=name,
                application=self.application,
                recipe=self.tuned,
                workload=self.workload,
                sut=self.sut,
                drivers=(self.driver,),
                labels_in_order=versions,
                metric="throughput_rps" if is_over else "latency_p99_ms",
            )
            bisection = start_bisection(self.member, plan)
            if self.few:
                return
            while step := bisection.steps.filter(result="").select_related("experiment").first():
                if not is_over and step.position == 2:
                    break
                self._run_out(step.experiment, self._speed_of_version)

    def tuning(self) -> None:
        """A search that came to its answer and its smallest recipe, and one that is under way."""
        recipe = install_recipe(self.member, "tomcat-nio-executor")
        choice = Choice(self.application, recipe, self.workload, self.sut, (self.driver,))
        space = {
            "parameters": [
                {"name": "max_threads", "low": 50, "high": 800, "log": True},
                {"name": "max_connections", "low": 200, "high": 1600, "log": True},
                {"name": "accept_count", "low": 50, "high": 800},
            ],
            "forbidden": ["max_connections < max_threads"],
        }
        limits = [LimitWanted("latency_p99_ms", at_most=40.0), LimitWanted("errors_total", at_most=0)]
        for name, most in (("Threads and queues", 400), ("The same on another day", 12)):
            plan = TuningPlan(name, choice, space, limits=limits, budget_runs=40, reduces=True, seed=SEED)
            tuning = start_tuning(self.member, plan)
            for _ in range(3 if self.few else most):
                trial = tuning.trials.select_related("run").filter(result="").exclude(run=None).first()
                if trial is None or trial.run is None:
                    break
                self._end_tuning_trial(trial.run)
            if self.few:
                return

    def _end_tuning_trial(self, run: Run) -> None:
        given = _recipe(run)["parameters"]
        threads, queue = given["max_threads"], given["accept_count"]
        speed = 24_000 * (1 - 0.06 * math.log(threads / 130) ** 2) * (0.97 if queue < 150 else 1.0)
        metrics = made_up_metrics(speed * math.exp(self.random.normal(0, 0.008)), self.random, connections=32)
        metrics["latency_p99_ms"], metrics["errors_total"] = round(18 + threads / 40, 2), 0.0
        with transaction.atomic():
            self._end(run, metrics)
            if threads < 60:
                run.outcome, run.validity, run.cause = Run.Outcome.FAILED, Run.Validity.NONE, Run.Cause.SPECIFICATION
                run.failure = "The server did not become ready within 60 s."
                run.save()
            run_ended(run)

    def _candidate(self, name: str, recipe: Recipe, given: dict[str, Any], *, is_baseline: bool) -> Candidate:
        return Candidate(name, self.application, recipe, self.sut, (self.driver,), given, is_baseline)

    def _run_out(
        self,
        experiment: Experiment,
        speed_rps: Callable[[Run], float],
        *,
        cpus: Callable[[Run], int] | None = None,
        members: Mapping[int, tuple[float, float]] | None = None,
    ) -> None:
        """Launch it when it is not, and give its runs figures until it is over."""
        if experiment.state == Experiment.State.DRAFT:
            launch_experiment(self.member, experiment)
        while run := experiment.runs.exclude(state=Run.State.FINISHED).order_by("number").first():
            throughput = speed_rps(run) * math.exp(self.random.normal(0, 0.008))
            metrics = made_up_metrics(throughput, self.random, connections=32)
            if cpus is not None:
                metrics["sut_cpus"] = float(cpus(run))
            if members is not None:
                metrics |= _of_members(throughput, *members[_buffers(run)])
            with transaction.atomic():
                self._end(run, metrics)
                conclude_experiment(experiment.pk)

    def _end_trial(self, search: CapacitySearch) -> None:
        trial = search.trials.select_related("run").get(result="")
        load = trial.rate_rps / CAPACITY_RPS / math.exp(self.random.normal(0, 0.004))
        metrics = made_up_metrics(min(trial.rate_rps, CAPACITY_RPS), self.random, connections=32)
        metrics["latency_p99_ms"] = round(3.2 + 0.9 * load / max(1 - load, 0.015), 2)
        metrics["offered_rate_rps"], metrics["sut_cpu_ratio"] = trial.rate_rps, round(min(0.985, 0.94 * load), 3)
        with transaction.atomic():
            self._end(trial.run, metrics)
            run_ended(trial.run)
        search.refresh_from_db()

    def _end(self, run: Run, metrics: dict[str, float]) -> None:
        now = timezone.now()
        run.state, run.outcome, run.validity = Run.State.FINISHED, Run.Outcome.SUCCEEDED, Run.Validity.VALID
        run.restore = Run.Restore.VERIFIED
        run.started_at, run.measured_at = now - timedelta(seconds=95), now - timedelta(seconds=70)
        run.finished_at, run.sut_profile = now, self.sut.profile
        run.findings = FINDINGS
        summarise(run, metrics)
        if limit := limit_of_runs([run]):
            run.findings = [*FINDINGS, asdict(Finding(CHECK, "ok", limit.sentence, {"limit": limit.role}, "made up"))]
        run.save()

    def _speed_of_version(self, run: Run) -> float:
        version = int(_recipe(run)["version"]) - self.first_version + 1
        return 24_000.0 if version < SLOWER_FROM else 22_300.0


def _buffers(run: Run) -> int:
    return int(_recipe(run)["parameters"]["shared_buffers_mib"])


def _of_members(throughput_rps: float, web: float, database: float) -> dict[str, float]:
    """What the two members of the shop were seen to do."""
    return {
        "sut_cpu_ratio": web,
        "sut_cpus": 32.0,
        "server_cpu_ratio": web * 31,
        "web.memory_used_bytes": 3.1e9,
        "web.received_bytes_per_s": throughput_rps * 520,
        "web.sent_bytes_per_s": throughput_rps * 6_400,
        "database.cpu_ratio": database,
        "database.server_cpu_ratio": database * 15.4,
        "database.memory_used_bytes": 21.4e9,
        "database.received_bytes_per_s": throughput_rps * 310,
        "database.sent_bytes_per_s": throughput_rps * 4_900,
    }


def _range(cpus: int) -> str:
    return "0" if cpus == 1 else f"0-{cpus - 1}"


def _cpus(run: Run) -> int:
    return int(str(_recipe(run)["parameters"]["cpus"]).rpartition("-")[2]) + 1


def _recipe(run: Run) -> dict[str, Any]:
    """The recipe of the run's frozen spec."""
    return run.spec["recipe"] if run.spec else {}
