"""Made-up answers for the pictures: a rate search, a scaling measurement, a sweep and a bisection, each played out.

Every one is launched and concluded by the product's own code; only the figures of the runs are made up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

import bench.django_project  # noqa: F401 - before the models
from experiments.analysis.findings import Finding
from experiments.asking.bisections.live import start_bisection
from experiments.asking.bisections.plan import BisectionPlan
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.asking.library.install import install_recipe
from experiments.asking.searches.live import start_search
from experiments.keeping.demo.made_up import made_up_metrics
from experiments.models import Application, CapacitySearch, Experiment, Host, Member, Recipe, Run, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.runs.summary import summarise
from experiments.running.ending.conclusion import conclude_experiment, run_ended

SEED = 20250811
SUT, DRIVER, RECIPE = "seed-sut-x86-a", "seed-driver-1", "Request threads"
BASELINE, SCALING, WEEKLY = "release 4.2", "CPU scaling of Tomcat 11", "Weekly scaling"
SWEEP = "Executor sweep"
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

    def _candidate(self, name: str, recipe: Recipe, given: dict[str, Any], *, is_baseline: bool) -> Candidate:
        return Candidate(name, self.application, recipe, self.sut, (self.driver,), given, is_baseline)

    def _run_out(
        self, experiment: Experiment, speed_rps: Callable[[Run], float], *, cpus: Callable[[Run], int] | None = None
    ) -> None:
        """Launch it when it is not, and give its runs figures until it is over."""
        if experiment.state == Experiment.State.DRAFT:
            launch_experiment(self.member, experiment)
        while run := experiment.runs.exclude(state=Run.State.FINISHED).order_by("number").first():
            throughput = speed_rps(run) * math.exp(self.random.normal(0, 0.008))
            metrics = made_up_metrics(throughput, self.random, connections=32)
            if cpus is not None:
                metrics["sut_cpus"] = float(cpus(run))
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
        run.save()

    def _speed_of_version(self, run: Run) -> float:
        version = int(_recipe(run)["version"]) - self.first_version + 1
        return 24_000.0 if version < SLOWER_FROM else 22_300.0


def _range(cpus: int) -> str:
    return "0" if cpus == 1 else f"0-{cpus - 1}"


def _cpus(run: Run) -> int:
    return int(str(_recipe(run)["parameters"]["cpus"]).rpartition("-")[2]) + 1


def _recipe(run: Run) -> dict[str, Any]:
    """The recipe of the run's frozen spec."""
    return run.spec["recipe"] if run.spec else {}
