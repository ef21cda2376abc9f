"""A search with nothing left out: real workers, SSH hosts, a server of known capacity, and h2load at a rate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.asking.searches.live import start_search
from experiments.models import CapacitySearch, Host, Run, SearchTrial, Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.versions import save_version
from tests import needs
from tests.faults.conftest import pair, pulls, sshd_hosts, stage
from tests.faults.programs import WITNESS, write_program
from tests.faults.stage import Actor, Stage, has_event

__all__ = ["pair", "pulls", "sshd_hosts", "stage"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    needs.program("h2load"),
]

CAPACITY_RPS = 100
CONNECTIONS = 4

# Refuses whatever comes after the first 100 requests of a second: a limit that does not depend on this machine.
SERVER = f"""import collections, http.server, sys, time

served = collections.deque(maxlen={CAPACITY_RPS})

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet per answer: two would wait 40 ms for each other

    def do_GET(self):
        now = time.monotonic()
        full = len(served) == served.maxlen and now - served[0] < 1
        if not full:
            served.append(now)
        self.send_response(503 if full else 200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\\n")

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def test_a_search_finds_the_capacity_of_a_real_server_although_a_worker_dies(
    stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    (pair[0].root / "server.py").write_text(SERVER)
    witness = WITNESS.format(root=pair[1].inside, program="h2load").replace('"$1" = -v', '"$1" = --version')
    write_program(pair[1].root / "h2load", witness)
    choice = stage.choice(*pair)
    load = content_of(choice.workload)
    body = load.model_dump(mode="json") | {
        "driver": {
            "kind": "h2load",
            "connections": CONNECTIONS,
            "threads": 1,
            "http_version": "1.1",
            "binary": f"{pair[1].inside}/h2load",
        },
        "phases": [{"name": "load", "kind": "measure", "duration_s": 2}],
    }
    workload = save_version(stage.member, Workload, "at a rate", body)
    for name in ("one", "two"):
        stage.start_worker(name)
    search = start_search(
        stage.member,
        replace(choice, workload=workload),
        name="How much?",
        objective_metric="latency_mean_ms",
        objective_ms=2000.0,
        low_rps=40,
        high_rps=160,
        width_ratio=0.4,
    )
    first = Run.objects.get()
    stage.until(has_event(first, "load_started", measured=True))
    stage.kill_worker(stage.worker_of(first))
    stage.until(lambda: not CapacitySearch.objects.filter(state="running").exists())
    search.refresh_from_db()
    trials = list(SearchTrial.objects.select_related("run"))
    told = [(trial.rate_rps, trial.phase, trial.result, trial.reason) for trial in trials]
    assert search.state == "finished", (search.sentence, told)
    assert (search.low_rps, search.high_rps) == (80, 128), told
    assert {trial.result for trial in trials} >= {"pass", "fail"}
    for trial in trials:
        assert trial.run.spec is not None
        assert trial.run.spec["workload"]["driver"]["rate_per_connection_rps"] == trial.rate_rps / CONNECTIONS
    assert Run.objects.get(pk=first.pk).attempts > 1
    # The stage's own invariants want a token of its own for each run; trials share the parameters of their search.
    assert set(Run.objects.values_list("restore", flat=True)) == {"verified"}
    assert not Host.objects.exclude(state="ready", leased_by=None).exists()
    assert pair[0].values() == pair[0].before
