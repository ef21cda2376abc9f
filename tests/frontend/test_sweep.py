"""A sweep on New experiment: one variant per value of a parameter."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.documents.versions import save_version
from experiments.models import Experiment, Member, Workload
from experiments.runs.copies import copy_experiment
from tests.experiments.conftest import WORKLOAD, admin, make_member, stock, team
from tests.experiments.finished import finish_next, whole_run
from tests.experiments.test_searches import RATED, load
from tests.frontend.test_forms_access import address, signed_in
from tests.frontend.test_forms_launch import experiment_form
from tests.frontend.test_scaling import data

__all__ = ["admin", "make_member", "stock", "team"]


def swept(admin: Member, stock: dict[str, Any], **more: str) -> str:
    given = {"sweep": "nofile", "sweep_values": "2048 4096; 8192 4096", **more}
    form = experiment_form(stock, sweep_rows="1", **given)
    answer = signed_in(admin).post(address("new_experiment", admin.team), form)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_sweep_makes_a_variant_of_the_baseline_per_value(admin: Member, stock: dict[str, Any]) -> None:
    page = swept(admin, stock)
    assert page.count('name="rows"') == 3
    for row, value in enumerate((2048, 4096, 8192)):
        assert f'name="v{row}-p_nofile" value="{value}"' in page
        assert f'value="nofile {value}"' in page
    assert '<input type="radio" name="baseline" value="0" checked>' in page
    assert not Experiment.objects.exists()


def test_a_sweep_over_the_offered_rate_is_launched_and_gives_a_curve(admin: Member, stock: dict[str, Any]) -> None:
    workload = save_version(admin, Workload, "rated", WORKLOAD | RATED)
    parts = experiment_form(stock, workload=str(workload.pk), repetitions="1", order="sequential")
    page = signed_in(admin).post(
        address("new_experiment", admin.team),
        parts | {"sweep_rows": "1", "sweep": "offered_rate_rps", "sweep_values": "1000 2000"},
    )
    assert 'name="v1-offered_rate_rps" value="2000"' in page.content.decode()
    rows = {"v0-name": "rate 1000", "v0-offered_rate_rps": "1000", "v1-name": "rate 2000", "v1-p_nofile": ""}
    made = signed_in(admin).post(
        address("new_experiment", admin.team), parts | rows | {"v1-offered_rate_rps": "2000", "launch": "1"}
    )
    assert made.status_code == 302, made.content.decode()
    experiment = Experiment.objects.get()
    assert [variant.offered_rate_rps for variant in experiment.variants.all()] == [1000, 2000]
    for rate_rps, p99_ms in ((1000, 12.0), (2000, 31.0)):
        run = finish_next(whole_run(load(rate_rps, p99_ms=p99_ms)))
        assert run.spec is not None
        assert run.spec["workload"]["driver"]["offered_rate_rps"] == rate_rps
    page = signed_in(admin).get(f"/t/perf/experiments/{experiment.pk}/")
    curve = data(page.content.decode(), "load-curve")
    assert [(point["offered"], point["x"], point["y"]) for point in curve["points"]] == [
        (1000, 1000, 12),
        (2000, 2000, 31),
    ]
    copied = copy_experiment(admin, experiment)
    assert [variant.offered_rate_rps for variant in copied.variants.all()] == [1000, 2000]


def test_a_load_tool_without_a_rate_is_refused(admin: Member, stock: dict[str, Any]) -> None:
    form = experiment_form(stock, **{"v1-offered_rate_rps": "2000", "launch": "1"})
    refused = signed_in(admin).post(address("new_experiment", admin.team), form)
    assert refused.status_code == 422
    assert "wrk cannot offer a rate of requests" in refused.content.decode()


@pytest.mark.parametrize("change", [{"sweep": "colour"}, {"sweep_values": " "}])
def test_a_sweep_over_nothing_changes_nothing(admin: Member, stock: dict[str, Any], change: dict[str, str]) -> None:
    page = swept(admin, stock, **change)
    assert page.count('name="rows"') == 2
    assert 'value="few files"' in page
