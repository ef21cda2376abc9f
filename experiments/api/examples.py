"""An example for every operation of the schema: a body, and the command line that sends it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

_RUN = {"application": "tomcat", "recipe": "limits@3", "sut": "sut-1", "drivers": ["driver-1"]}
_EXPERIMENT = {
    "name": "more open files",
    "question": "Does a higher limit of open files raise the throughput?",
    "workload": "home",
    "variants": [
        {"name": "65,535 files", **_RUN, "is_baseline": True},
        {"name": "1,000,000 files", **_RUN, "parameters": {"nofile": 1_000_000}},
    ],
}
_RUNS = {"runs": [141, 142]}
_TAGGED = {**_RUNS, "tags": ["release"]}

BODIES: Mapping[str, Any] = {
    "create_host": {"name": "sut-1", "address": "10.0.0.11", "user": "bench", "roles": "sut"},
    "change_host": {"labels": {"rack": "7"}},
    "approve_host_key": {"fingerprint": "SHA256:XKBAIGz/6BY1lFd8Pff9YrAyQqBAIuMQhvvhjEQjbTk"},
    "drain_host": {"drained": True},
    "restore_host": {"force": False},
    "clear_dirty_host": {"reason": "vm.swappiness was set back by hand"},
    "grant_host": {"user": "ada", "granted": True},
    "create_reservation": {"hosts": ["sut-1"], "until": "2030-08-01T16:30:00Z", "reason": "profiling"},
    "change_reservation": {"until": "2030-08-01T18:00:00Z"},
    "save_application": {"server": {"kind": "tomcat", "home": "/opt/tomcat"}},
    "save_recipe": {
        "parameters": {"nofile": {"type": "int", "default": 65535}},
        "steps": [{"kind": "limits", "nofile": "${nofile}"}],
    },
    "save_workload": {
        "driver": {"kind": "wrk", "connections": 128, "threads": 8},
        "phases": [{"name": "load", "kind": "measure", "duration_s": 60}],
    },
    "read_jmeter_plan": {"jmx": '<jmeterTestPlan version="1.2">...</jmeterTestPlan>'},
    "create_experiment": _EXPERIMENT,
    "forecast_experiment": _EXPERIMENT,
    "launch_copy": {"experiment": "more open files", "labels": {"commit": "abc123", "branch": "main"}},
    "launch_experiment": {"repetitions": 5},
    "create_run": {**_RUN, "workload": "home", "parameters": {"nofile": 65535}, "labels": {"commit": "abc123"}},
    "change_run": {"priority": "low"},
    "tag_runs": _TAGGED,
    "untag_runs": _TAGGED,
    "archive_runs": _RUNS,
    "unarchive_runs": _RUNS,
    "rerun_runs": _RUNS,
    "create_recording": {"role": "sut", "kind": "mpstat", "text": "Linux 6.1.0 (sut-1) ..."},
    "start_search": {
        **_RUN,
        "name": "sustainable rate",
        "workload": "home",
        "objective_ms": 5,
        "low_rps": 1000,
        "high_rps": 100_000,
    },
    "import_timers": {"name": "actions", "text": "Action,Total ms,Count\\nlogin,120,40\\n"},
    "expect_present_level": {"metric": "throughput_rps"},
    "change_metric": {"followed": True},
    "change_alert": {"triage": "infra", "owner": "ada", "note": "the switch was replaced"},
    "create_import": {"kind": "wrk", "text": "Running 5s test @ http://sut/ ...", "labels": {"commit": "abc123"}},
    "install_template": {"sut": "sut-1", "drivers": ["driver-1"]},
    "create_token": {"name": "ci", "scopes": ["read", "launch"], "days": 90},
    "start_bisection": {
        **_RUN,
        "name": "who slowed it?",
        "workload": "home",
        "parameter": "commit",
        "candidates": ["4f2c9d1", "8a01b33", "c77e012"],
    },
    "create_schedule": {"name": "every night", "experiment": 7, "cron": "30 2 * * 1-5", "time_zone": "Europe/Berlin"},
    "change_schedule": {"labels": {"commit": "abc123"}},
    "create_webhook": {
        "name": "team chat",
        "url": "https://hooks.example.com/T1/B2/x",
        "format": "slack",
        "events": ["verdict.reached", "alert.raised"],
    },
    "set_thresholds": {"values": {}},
    "change_webhook": {"is_active": False},
    "create_annotation": {"text": "the switch was replaced", "run": 142},
    "change_annotation": {"text": "the switch was replaced at 14:00"},
    "save_baseline": {"run": 142},
    "create_view": {"name": "Nightly on main", "query": "label=branch%3Dmain&sort=-number", "shared": True},
    "change_view": {"shared": True},
    "write_run_notes": {"text": "The **switch** was replaced before this run."},
    "write_experiment_notes": {"text": "- asked for by #4711\n- nothing else ran on the host"},
    "change_own_team": {"name": "Performance"},
    "change_member": {"role": "editor"},
    "create_service": {"name": "ci"},
    "create_invitation": {"role": "launcher"},
    "create_share": {"kind": "run", "runs": [142]},
    "move_to_trash": {"runs": [142]},
    "restore_from_trash": {"runs": [142]},
}
PLACES: Mapping[str, str] = {
    "number": "142",
    "name": "sut-1",
    "user": "ada",
    "version": "3",
    "fingerprint": "4b0a2f61c0c3",
    "digest": "9f1c0de2a7b4",
    "token_id": "5f0c2a9be1d34c77",
}
_PLACE = re.compile(r"{(\w+)}")
_NAMES = {"applications": "tomcat", "recipes": "limits", "workloads": "home", "library": "tomcat-baseline"}


def add_examples(schema: dict[str, Any]) -> None:
    """Give every operation an example body, where it has one, and the curl command that asks it."""
    for path, methods in schema["paths"].items():
        for method, said in methods.items():
            body = None
            if "requestBody" in said:
                content = said["requestBody"]["content"]["application/json"]
                body = content.setdefault("example", BODIES.get(said["operationId"], {}))
            said["x-codeSamples"] = [{"lang": "Shell", "source": _curl(method, path, said, body)}]


def _curl(method: str, path: str, said: Mapping[str, Any], body: Any) -> str:
    noun = path.split("/")[3]

    def place(found: re.Match[str]) -> str:
        name = found[1]
        return _NAMES[noun] if name == "name" and noun in _NAMES else PLACES.get(name, "7")

    words = ["curl", "-H", '"Authorization: Bearer $BENCHHUB_TOKEN"']
    if method != "get":
        words += ["-X", method.upper()]
    if any(parameter["name"] == "Idempotency-Key" for parameter in said["parameters"]):
        words += ["-H", '"Idempotency-Key: build-17"']
    if body is not None:
        words += ["-H", "'Content-Type: application/json'", "-d", shlex.quote(json.dumps(body))]
    address = _PLACE.sub(place, path)
    return " ".join([*words, f'"$BENCHHUB_URL{address}"'])
