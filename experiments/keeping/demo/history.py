"""A made-up history for the demonstration: weeks of nightly runs with one change point, marked as demo."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
from django.utils import timezone

from experiments.asking.launching.choices import Choice, freeze
from experiments.judging.alerts.trends import rebuild
from experiments.keeping.demo.made_up import digest_of, made_up_metrics
from experiments.models import Application, ConfigSnapshot, HardwareProfile, Host, Member, Recipe, Run, Workload
from experiments.registry.documents.configuration import IN_PART
from experiments.registry.documents.contents import SCHEMAS
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.runs.numbers import reserve_numbers
from experiments.registry.runs.parameters import parameters_of
from experiments.registry.runs.series import extend_series
from experiments.registry.runs.snapshots import content_digest
from experiments.registry.runs.summary import summarise

HISTORY_WORKLOAD = "Nightly HelloWorld (demo history)"
DAYS, RUNS_PER_DAY = 28, 2
CHANGE_AT = 42
"""The run from which on the made-up machine has another kernel and is 7 % slower: a week ago, whenever it is made."""
TAIL_RATIO = 1.18
"""How much longer its slowest requests take from then on, beyond what is due to the lower throughput."""
SEED = 20250811

_BEFORE = {
    IN_PART: "made up for the demonstration",
    "sut.kernel.release": "6.1.0-37-amd64",
    "sysctl.net.core.somaxconn": "4096",
    "sysctl.kernel.numa_balancing": "0",
    "process.limits.nofile": "4096",
    "jvm.version": "17.0.15+6",
    "tomcat.server_xml.Server/Service/Connector@maxThreads": "200",
}
_AFTER = {**_BEFORE, "sut.kernel.release": "6.12.38-amd64", "sysctl.kernel.numa_balancing": "1"}


def make_history(member: Member, *, sut: Host, driver: Host, application: Application, recipe: Recipe) -> None:
    """Store the history. Its figures come from a seeded generator; every run says that it is demo data."""
    workload = _workload(member)
    spec = freeze(Choice(application, recipe, workload, sut, (driver,))).model_dump(mode="json")
    profile, _ = HardwareProfile.objects.get_or_create(
        team=member.team, digest=digest_of("demo profile"), defaults={"facts": {"cpu.model": "made-up demo machine"}}
    )
    configs = [_config(member, values) for values in (_BEFORE, _AFTER)]
    fingerprint, count = digest_of("demo history"), DAYS * RUNS_PER_DAY
    random = np.random.default_rng(SEED)
    throughput = 18_400 * np.exp(random.normal(0, 0.012, count)) * np.where(np.arange(count) < CHANGE_AT, 1.0, 0.93)
    first, start = reserve_numbers(member.team, count), timezone.now() - timedelta(days=DAYS)
    drivers = driver_set((driver,))
    runs = []
    for index in range(count):
        at = start + timedelta(days=DAYS * index / count)
        run = Run(
            team=member.team,
            number=first + index,
            spec=spec,
            parameters=parameters_of(spec),
            fingerprint=fingerprint,
            labels={"branch": "main", "commit": digest_of(f"commit {index}")[:10]},
            tags=["demo"],
            notes="Made-up figures of the demonstration.",
            application=application,
            recipe=recipe,
            workload=workload,
            sut=sut,
            drivers=drivers,
            sut_profile=profile,
            state=Run.State.FINISHED,
            outcome=Run.Outcome.SUCCEEDED,
            validity=Run.Validity.VALID,
            restore=Run.Restore.VERIFIED,
            created_by_id=member.user_id,
            started_at=at,
            measured_at=at,
            finished_at=at + timedelta(seconds=45),
            config=configs[0] if index < CHANGE_AT else configs[1],
            is_demo=True,
        )
        metrics = made_up_metrics(float(throughput[index]), random)
        if index >= CHANGE_AT:
            metrics["latency_p99_ms"] = round(metrics["latency_p99_ms"] * TAIL_RATIO, 3)
        summarise(run, metrics)
        runs.append(run)
    stored = Run.objects.bulk_create(runs)
    series = extend_series(
        stored[-1],
        application=str(application),
        workload=str(workload),
        tool="wrk (demo history)",
        latency_basis="service_time",
    )
    rebuild(series)


def _workload(member: Member) -> Workload:
    body = {
        "description": "Stands behind the made-up history of the demonstration.",
        "driver": {"kind": "wrk", "connections": 32, "threads": 1},
        "path": "/examples/servlets/servlet/HelloWorldExample",
        "phases": [{"name": "measure", "kind": "measure", "duration_s": 30}],
    }
    document = SCHEMAS[Workload].model_validate(body).model_dump(mode="json")
    return Workload.objects.create(
        team=member.team, name=HISTORY_WORKLOAD, version=1, body=document, created_by_id=member.user_id, is_demo=True
    )


def _config(member: Member, values: dict[str, str]) -> ConfigSnapshot:
    config, _ = ConfigSnapshot.objects.get_or_create(
        team=member.team, digest=content_digest(values), defaults={"values": values}
    )
    return config
