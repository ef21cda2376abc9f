"""Kernel, OS and memory as factors: of imported results, of an experiment over two hosts, on pages too."""

from __future__ import annotations

import json
from typing import Any

from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.judging.comparing.machines import machine_texts
from experiments.models import HardwareProfile, Member, Recipe
from experiments.registry.documents.versions import save_version
from tests.experiments.api.conftest import ApiClient
from tests.experiments.conftest import RECIPE, ready_host
from tests.frontend.test_forms_access import address, signed_in

OLD, NEW = "5.14.0-570.el9.x86_64", "6.8.0-60-generic"


def machine(release: str, memory_kb: int) -> str:
    """What `uname -a` and /proc/meminfo print."""
    return f"Linux server {release} #1 SMP x86_64 GNU/Linux\nMemTotal:       {memory_kb} kB\n"


def test_recorded_results_of_two_kernels_are_compared_by_kernel(api: ApiClient, admin: Member) -> None:
    numbers = []
    for release, memory_kb, factor in ((OLD, 16_300_000, 1.0), (NEW, 16_200_000, 2.0)):
        for variant, brings in (("thread pool", 1.0), ("virtual threads", 1.0 if release == OLD else 1.5)):
            for nth in range(3):
                rate = 1000 * factor * brings + nth
                figures = {"throughput_rps": rate, "requests": round(rate * 10), "duration_s": 10, "errors_status": 0}
                body = {
                    "kind": "command",
                    "text": json.dumps(figures),
                    "machine": machine(release, memory_kb),
                    "labels": {"variant": variant},
                }
                answer = api.post("/imports", body)
                assert answer.status_code == 201, answer.content
                numbers.append(answer.json()["number"])
    told = ",".join(map(str, numbers))
    found = api.get(f"/machine-factors?runs={told}").json()
    (split,) = found["splits"]
    assert split["factors"] == ["kernel"]
    assert [level["values"] for level in split["levels"]] == [[OLD], [NEW]]
    assert [round(row["levels"][1]["change"]["ratio"], 1) for row in split["setups"]] == [2.0, 3.0]
    (effect,) = split["effects"]
    assert effect["levels"][1]["against_first"]["ratio"] > 1.4
    page = signed_in(admin).get(address("compare", admin.team) + f"?runs={','.join(map(str, numbers[:10]))}")
    assert "<h2>By kernel</h2>" in page.content.decode()
    both = api.get(f"/machine-factors?runs={told}&experiment=1")
    assert both.status_code == 422
    assert both.json()["field"] == "runs"


def test_an_experiment_over_two_hosts_is_divided_by_what_they_were_in_each_run(
    admin: Member, stock: dict[str, Any], api: ApiClient
) -> None:
    tuned = save_version(admin, Recipe, "tuned", RECIPE)
    hosts = {"first": stock["sut"], "second": ready_host(admin, "sut-2", roles="sut")}
    given = {"application": stock["application"], "drivers": stock["drivers"]}
    candidates = [
        Candidate(f"{name}, {recipe.name}", recipe=recipe, sut=host, **given)
        for name, host in hosts.items()
        for recipe in (stock["recipe"], tuned)
    ]
    experiment = create_experiment(admin, name="q", workload=stock["workload"], candidates=candidates, repetitions=3)
    launch_experiment(admin, experiment)
    facts = {
        "first": {"kernel.release": OLD, "os.name": "RHEL 9"},
        "second": {"kernel.release": NEW, "os.name": "Ubuntu"},
    }
    profiles = {
        name: HardwareProfile.objects.create(team=admin.team, digest=name * 8, facts=one) for name, one in facts.items()
    }
    for run in experiment.runs.select_related("variant"):
        assert run.variant is not None
        run.sut_profile = profiles[run.variant.name.partition(",")[0]]
        run.state, run.outcome, run.validity = "finished", "succeeded", "valid"
        run.metrics = {"throughput_rps": 1000.0 + 10 * run.variant.position + (run.block or 0)}
        run.save()
    page = " ".join(signed_in(admin).get(address("experiment", admin.team, experiment.pk)).content.decode().split())
    assert "<h2>By kernel, OS</h2>" in page
    assert "Kernel and OS differ together in these runs" in page
    assert f"{OLD}<br>RHEL 9<br>" in page
    assert 'data-source="machines-1"' in page
    (split,) = api.get(f"/machine-factors?experiment={experiment.pk}").json()["splits"]
    assert [level["hosts"] for level in split["levels"]] == [["sut-1"], ["sut-2"]]
    assert [row["setup"] for row in split["setups"]] == ["limits v1", "tuned v1"]
    assert split["setups"][0]["levels"][1]["change"]["paired"] is True


def test_memory_that_a_kernel_keeps_for_itself_makes_no_other_machine() -> None:
    sizes = [16_200_000_000, 16_300_000_000, 32_900_000_000]
    texts = [one["memory"] for one in machine_texts([{"memory.total_bytes": str(size)} for size in sizes])]
    assert texts == ["15.2 GiB", "15.2 GiB", "30.6 GiB"]
