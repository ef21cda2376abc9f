"""Figures per CPU: how many CPUs the server had, and what a run is worth per CPU."""

from __future__ import annotations

from typing import Any

import pytest

from agents.spec import RunSpec
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Application, Member, Recipe
from experiments.registry.documents.versions import save_version
from experiments.registry.metrics.normalisation import described_cpus, per_cpu, sut_cpus
from tests.agents.specs import make_spec
from tests.experiments.finished import finish_next, report, whole_run

CHANNELS = ("cpu.busy_ratio", "cpu.0.busy_ratio", "cpu.1.busy_ratio", "cpu.10.busy_ratio", "cpu.1.steal_ratio")


def spec_on(cpus: str) -> RunSpec:
    spec = make_spec()
    server = spec.application.server.model_copy(update={"cpus": cpus})
    return spec.model_copy(update={"application": spec.application.model_copy(update={"server": server})})


@pytest.mark.parametrize(
    ("cpus", "channels", "facts", "count"),
    [
        ("2-3", CHANNELS, {"cpu.online": "0-7"}, 2),
        ("", CHANNELS, {"cpu.online": "0-7"}, 3),
        ("", (), {"cpu.online": "0-7"}, 8),
        ("", (), {}, None),
    ],
)
def test_the_cpu_set_counts_then_what_was_online_while_measuring(
    cpus: str, channels: tuple[str, ...], facts: dict[str, str], count: int | None
) -> None:
    assert sut_cpus(spec_on(cpus), channels, facts) == count


@pytest.mark.parametrize(
    ("label", "facts", "count"),
    [
        ("2", {"cpu.online": "0-7"}, 2),
        ("99999", {"cpu.online": "0-7"}, 8),
        ("", {"cpu.count": "4"}, 4),
        ("", {"cpu.count": "999999999"}, None),
        ("", {}, None),
    ],
)
def test_the_label_counts_then_what_the_described_machine_can_have(
    label: str, facts: dict[str, str], count: int | None
) -> None:
    assert described_cpus({"cpus": label}, facts) == count


def test_figures_are_per_core_and_per_second_of_cpu_that_was_spent() -> None:
    found = per_cpu({"throughput_rps": 8000.0, "sut_cpu_ratio": 0.5}, 4)
    assert found == {"sut_cpus": 4.0, "throughput_per_core_rps": 2000.0, "requests_per_cpu_s": 4000.0}
    assert per_cpu({"throughput_rps": 8000.0}, 4) == {"sut_cpus": 4.0, "throughput_per_core_rps": 2000.0}
    assert per_cpu({"throughput_rps": 8000.0, "sut_cpu_ratio": 0.0}, 4).keys() == {
        "sut_cpus",
        "throughput_per_core_rps",
    }
    assert per_cpu({"throughput_rps": 8000.0}, None) == {}


def test_a_run_stores_them_with_its_other_figures(admin: Member, stock: dict[str, Any]) -> None:
    server = {"server": {"kind": "tomcat", "home": "/opt/tomcat", "cpus": "0"}}
    application = save_version(admin, Application, "pinned", server)
    recipe = save_version(admin, Recipe, "two", {"steps": [{"kind": "affinity", "cpus": "0-1"}]})
    launch_run(admin, Choice(**stock | {"application": application, "recipe": recipe}))
    metrics = finish_next(whole_run(report(1800.0))).metrics
    assert (metrics["sut_cpus"], metrics["throughput_per_core_rps"]) == (2.0, 900.0)
    assert metrics["requests_per_cpu_s"] == pytest.approx(1800 / (0.9 * 2))
