"""What to type for the parameters of an address: an example, and what it is where the operation does not say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TIME = "2026-08-01T16:30:00Z"
_FINGERPRINT = "4b0a2f61c0c3"
_EXAMPLES: Mapping[str, Any] = {
    "Idempotency-Key": "build-17",
    "If-Match": '"9f1c0de2a7b4"',
    "If-None-Match": '"9f1c0de2a7b4"',
    "Last-Event-ID": 17,
    "a": 1,
    "action": "host",
    "after": 17,
    "before": "141",
    "application": "tomcat",
    "archived": "true",
    "b": 2,
    "baseline": 141,
    "candidate": [142],
    "channel": ["cpu.busy_ratio"],
    "columns": "number,throughput_rps,latency_p99_ms",
    "cpus_per_node": 16,
    "cursor": 120,
    "driver": "driver-1",
    "experiment": "2",
    "fields": "name",
    "from": 1_785_600_000_000,
    "host": "sut-1,driver-1",
    "kind": "change",
    "kinds": "run,alert",
    "label": ["commit=abc123"],
    "limit": 50,
    "margin_pct": 3,
    "metric": "throughput_rps",
    "min_efficiency_ratio": 0.8,
    "name": "more open files",
    "note": "shorter warm-up",
    "outcome": "succeeded",
    "param": ["nofile=16384"],
    "person": "ada",
    "profiled": True,
    "q": "tomcat",
    "query": "tomcat commit:abc123",
    "recipe": "limits",
    "roles__in": "sut,both",
    "run": 142,
    "runs": "141,142",
    "series": _FINGERPRINT,
    "since": "2026-08-01T00:00:00Z",
    "sort": "-throughput_rps",
    "state": "finished",
    "subject": "sut-1",
    "sut": "sut-1",
    "tag": "release",
    "to": 1_788_200_000_000,
    "total_cpus": 64,
    "triage": "open",
    "until": "2026-09-01T00:00:00Z",
    "validity": "valid",
    "version": 1,
    "wait": 60,
    "without_version": 3,
    "workload": "home",
    "application__in": "tomcat,liberty",
    "driver__in": "driver-1,driver-2",
    "experiment__in": "2,3",
    "name__in": "sut-1,driver-1",
    "number__in": "141,142",
    "outcome__in": "succeeded,failed",
    "recipe__in": "limits,default",
    "state__in": "queued,measuring",
    "sut__in": "sut-1,sut-2",
    "validity__in": "valid,suspect",
    "workload__in": "home,search",
    "number__gte": 100,
    "number__lte": 142,
    "throughput_rps__gte": 50_000,
    "throughput_rps__lte": 90_000,
    "latency_p50_ms__gte": 0.5,
    "latency_p50_ms__lte": 2,
    "latency_p99_ms__gte": 1,
    "latency_p99_ms__lte": 20,
    "errors_total__gte": 1,
    "errors_total__lte": 0,
    "sut_cpu_ratio__gte": 0.9,
    "sut_cpu_ratio__lte": 0.5,
    "driver_cpu_ratio__gte": 0.8,
    "driver_cpu_ratio__lte": 0.8,
    **{
        f"{name}__{end}": _TIME
        for name in ("queued_at", "started_at", "finished_at", "created_at")
        for end in ("gte", "lte")
    },
}
_OF_ONE: Mapping[tuple[str, str], Any] = {
    ("compare_functions", "after"): "142",
    ("get_run_profile", "name"): "async-profiler-cpu",
    ("compare_functions", "role"): "database",
    ("experiment_functions", "role"): "database",
    ("list_runs", "cursor"): "WyItbnVtYmVyIiwgMTIwXQ",
    ("list_runs", "fields"): "number,throughput_rps,latency_p99_ms",
    ("list_alerts", "state"): "confirmed",
    ("list_alerts", "fields"): "id,metric,triage",
    ("list_hosts", "fields"): "name,state",
    ("list_hosts", "state__in"): "ready,dirty",
    ("list_experiments", "name__in"): "more open files,CPU scaling",
    ("list_experiments", "state__in"): "running,finished",
    ("list_experiments", "fields"): "id,name,state",
    ("get_run", "fields"): "number,state,validity",
    ("get_experiment", "fields"): "id,name,state",
    ("machine_factors", "experiment"): 2,
    ("experiment_verdict", "baseline"): "branch:main",
    ("experiment_verdict", "metric"): ["throughput_rps", "latency_p99_ms"],
}


_SAID: Mapping[str, str] = {
    "a": "One version",
    "after": "Only what has a higher sequence number",
    "application": "Its whole name; of any version",
    "b": "The other version",
    "baseline": "The number of the run that the others are held against",
    "cpus_per_node": "How many CPUs a NUMA node has: no instance of the advice is larger",
    "cursor": "`next_cursor` of the page before; left out for the first page",
    "digest": "As lists and hosts name the hardware profile",
    "driver": "The whole name of a driver host",
    "experiment": "The experiment's id",
    "fingerprint": "As `GET /series` and a run name it",
    "kind": "`change` or `missing`",
    "limit": "How many at most",
    "metric": "A name of `GET /metrics`",
    "min_efficiency_ratio": "The advice is for CPU counts that keep this part of the ideal",
    "name": "Its name; spaces and slashes as %20 and %2F",
    "note": "Why it was changed; stands in the list of versions",
    "number": "The run's number, without the #",
    "outcome": "`succeeded`, `failed`, `cancelled` or `lost`",
    "recipe": "Its whole name; of any version",
    "since": "From this time on",
    "sort": "`number`, `throughput_rps`, `latency_p99_ms` or `finished_at`; with `-` the largest first",
    "state": "`queued`, `preparing`, `warming_up`, `measuring`, `collecting`, `restoring` or `finished`",
    "sut": "The whole name of a host",
    "tag": "One of its tags",
    "token_id": "As lists name the token; the part of its text between the two `_`",
    "until": "Before this time",
    "user": "The user name",
    "validity": "`valid`, `suspect` or `invalid`",
    "version": "Else the newest one",
    "workload": "Its whole name; of any version",
}
_SAID_OF_ONE: Mapping[tuple[str, str], str] = {
    ("list_alerts", "state"): "`suspected`: fewer than 4 runs stand behind it; or `confirmed`",
    ("list_experiments", "state"): "How far it is",
    ("list_searches", "state"): "How far it is",
    ("list_bisections", "state"): "How far it is",
    ("list_tunings", "state"): "How far it is",
    ("get_history", "recipe"): "Only the runs with this recipe",
    ("run_verdict", "inconclusive"): "What a suspect run counts as",
    ("experiment_report", "format"): "What comes back",
    ("run_report", "format"): "What comes back",
}


def said_of(operation: str, name: str) -> str:
    """What a parameter of this name is, in a few words; empty when nobody has said."""
    if name.endswith(("__gte", "__lte")):
        return "At least this" if name.endswith("__gte") else "At most this"
    if name.endswith("_id"):
        return _SAID.get(name, f"The id of the {name.removesuffix('_id')}, as lists name it")
    return _SAID_OF_ONE.get((operation, name), _SAID.get(name, ""))


def example_of(operation: str, name: str) -> Any:
    """What stands for the parameter of this name; None when nobody has said."""
    return _OF_ONE.get((operation, name), _EXAMPLES.get(name))
