"""An example body for every operation that takes one. `bench.api_story` sends each of them to a real installation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RUN = {"application": "tomcat", "recipe": "limits@3", "sut": "sut-1", "drivers": ["driver-1"]}
_EXPERIMENT = {
    "name": "more open files",
    "question": "Does a higher limit of open files raise the throughput?",
    "workload": "home",
    "variants": [
        {"name": "4,096 files", **_RUN, "parameters": {"nofile": 4096}, "is_baseline": True},
        {"name": "16,384 files", **_RUN},
    ],
}
_RUNS = {"runs": [141, 142]}
_TAGGED = {**_RUNS, "tags": ["release"]}

_WRK = """Running 5s test @ http://sut-1/
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     0.87ms    2.23ms  35.13ms   90.90%
    Req/Sec    35.04k     7.32k   47.84k    67.33%
  353439 requests in 5.10s, 54.27MB read
Requests/sec:  69302.00
Transfer/sec:     10.64MB
"""
_MPSTAT = """Linux 6.12.38 (sut-1) \t08/01/26 \t_x86_64_\t(1 CPU)

16:30:00     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
16:30:01     all   71.00    0.00   20.00    0.00    0.00    3.00    0.00    0.00    0.00    6.00

16:30:01     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
16:30:02     all   73.00    0.00   19.00    0.00    0.00    3.00    0.00    0.00    0.00    5.00
"""
_JMX = (
    '<jmeterTestPlan version="1.2"><hashTree><ThreadGroup testname="users">'
    '<stringProp name="ThreadGroup.num_threads">${__P(THREAD,10)}</stringProp>'
    '<stringProp name="ThreadGroup.duration">${__P(DURATION,30)}</stringProp>'
    "</ThreadGroup></hashTree></jmeterTestPlan>"
)

_COLLAPSED = "bWFpbjtoYW5kbGU7cGFyc2UgMTIwCm1haW47aGFuZGxlO3JlbmRlciA4MAo="
"""main;handle;parse 120, main;handle;render 80."""

BODIES: Mapping[str, Any] = {
    "create_host": {"name": "sut-1", "address": "10.0.0.11", "user": "bench", "roles": "sut"},
    "change_host": {"labels": {"rack": "7"}},
    "approve_host_key": {"fingerprint": "SHA256:XKBAIGz/6BY1lFd8Pff9YrAyQqBAIuMQhvvhjEQjbTk"},
    "drain_host": {"drained": True},
    "restore_host": {"force": False},
    "clear_dirty_host": {"reason": "vm.swappiness was set back by hand"},
    "grant_host": {"user": "ada", "granted": True},
    "create_reservation": {"hosts": ["sut-1"], "until": "2026-08-01T16:30:00Z", "reason": "profiling"},
    "change_reservation": {"until": "2026-08-01T18:00:00Z"},
    "save_application": {"server": {"kind": "tomcat", "home": "/opt/tomcat"}},
    "save_recipe": {
        "parameters": {"nofile": {"type": "int", "default": 16384}},
        "steps": [{"kind": "limits", "nofile": "${nofile}"}],
    },
    "save_workload": {
        "driver": {"kind": "wrk", "connections": 128, "threads": 8},
        "phases": [{"name": "load", "kind": "measure", "duration_s": 60}],
    },
    "read_jmeter_plan": {"jmx": _JMX},
    "create_experiment": _EXPERIMENT,
    "change_experiment": {"question": "Does a limit of 16,384 open files raise the throughput by 3 %?"},
    "forecast_experiment": _EXPERIMENT,
    "launch_copy": {"experiment": "more open files", "labels": {"commit": "abc123", "branch": "main"}},
    "launch_experiment": {"repetitions": 5},
    "set_experiment_baseline": {"variant": "16,384 files"},
    "start_dry_run": {**_RUN, "workload": "home", "parameters": {"nofile": 16384}},
    "create_run": {**_RUN, "workload": "home", "parameters": {"nofile": 16384}, "labels": {"commit": "abc123"}},
    "change_run": {"priority": "low"},
    "tag_runs": _TAGGED,
    "untag_runs": _TAGGED,
    "archive_runs": _RUNS,
    "unarchive_runs": _RUNS,
    "rerun_runs": _RUNS,
    "create_recording": {
        "role": "sut",
        "kind": "mpstat",
        "text": _MPSTAT,
        "started_at": "2026-08-01T16:30:00Z",
    },
    "start_search": {
        **_RUN,
        "name": "sustainable rate",
        "workload": "home at a rate",
        "objective_ms": 5,
        "low_rps": 1000,
        "high_rps": 100_000,
    },
    "import_timers": {"name": "actions", "text": "Action,Total ms,Count\nlogin,120,40\nsearch,960,80\n"},
    "add_run_profile": {"profiler": "async-profiler", "content": _COLLAPSED, "event": "cpu", "engine": "perf"},
    "expect_present_level": {"metric": "throughput_rps"},
    "change_metric": {"followed": True},
    "create_alert_rule": {
        "name": "p99 of the checkout",
        "kind": "figure",
        "metric": "latency_p99_ms",
        "side": "above",
        "limit": 100,
    },
    "change_alert_rule": {"limit": 120},
    "change_alert": {"triage": "infra", "owner": "ada", "note": "the switch was replaced"},
    "create_import": {"kind": "wrk", "text": _WRK, "labels": {"commit": "abc123"}},
    "install_template": {"sut": "sut-1", "drivers": ["driver-1"], "settings": {"tomcat_home": "/opt/tomcat"}},
    "create_token": {"name": "ci", "scopes": ["read", "launch"], "days": 90},
    "start_bisection": {
        **_RUN,
        "name": "who slowed it?",
        "workload": "home",
        "recipe": "limits",
        "good_version": 1,
        "bad_version": 3,
    },
    "start_tuning": {
        **_RUN,
        "name": "what makes it fast?",
        "workload": "home",
        "recipe": "limits",
        "space": {"parameters": [{"name": "nofile", "low": 4096, "high": 65536, "log": True}]},
        "limits": [{"metric": "latency_p99_ms", "at_most": 50}, {"metric": "errors_total", "at_most": 0}],
        "budget_runs": 40,
    },
    "add_tuning_budget": {"runs": 20},
    "leave_out_region": {"mixture": "nofile > 60000"},
    "create_schedule": {"name": "every night", "experiment": 2, "cron": "30 2 * * 1-5", "time_zone": "Europe/Berlin"},
    "change_schedule": {"labels": {"commit": "abc123"}},
    "create_webhook": {
        "name": "team chat",
        "url": "https://hooks.example.com/T1/B2/x",
        "format": "slack",
        "events": ["verdict.reached", "alert.raised"],
    },
    "create_prometheus_source": {
        "name": "production",
        "url": "https://prometheus.example.com",
        "auth": "bearer",
        "secret": "the-token-of-a-reader",
        "queries": [
            {
                "channel": "load1",
                "query": 'node_load1{instance="{host}:9100"}',
                "unit": "tasks",
                "role": "sut",
                "step_s": 15,
            }
        ],
    },
    "change_prometheus_source": {"is_active": False},
    "try_prometheus_source": {"host": "sut-1"},
    "set_thresholds": {"values": {"error_budget_ratio": 0.001}},
    "set_history_limits": {"metric": "latency_p99_ms", "values": {"history_margin_ratio": 0.08}},
    "change_webhook": {"is_active": False},
    "create_annotation": {"text": "the switch was replaced", "run": 142},
    "change_annotation": {"text": "the switch was replaced at 14:00"},
    "save_baseline": {"run": 142},
    "create_view": {"name": "Nightly on main", "query": "label=branch%3Dmain&sort=-number", "shared": True},
    "change_view": {"shared": True},
    "write_run_notes": {"text": "The **switch** was replaced before this run."},
    "write_experiment_notes": {"text": "- asked for by #4711\n- nothing else ran on the host"},
    "change_mails": {"verdicts": True},
    "change_own_team": {"name": "Performance"},
    "change_member": {"role": "editor"},
    "create_service": {"name": "ci"},
    "create_invitation": {"role": "launcher"},
    "create_share": {"kind": "run", "runs": [142]},
    "move_to_trash": {"runs": [142]},
    "restore_from_trash": {"runs": [142]},
}
