"""A rate has the unit of its tool, in forms and in lists."""

from __future__ import annotations

import pytest

from experiments.models import Workload
from frontend.pages.documents.contents import summary_of
from frontend.shared.forms.model_fields import label_of


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("offered_rate_rps", "Offered rate (requests/s)"),
        ("rate_tps", "Rate (transactions/s)"),
        ("rate_per_s", "Rate (per second)"),
        ("duration_s", "Duration (s)"),
    ],
)
def test_the_field_of_a_rate_names_its_unit(name: str, label: str) -> None:
    assert label_of(name) == label


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        ({"kind": "wrk2", "connections": 8, "offered_rate_rps": 2000}, "2,000 requests/s offered"),
        ({"kind": "pgbench", "clients": 8, "rate_tps": 500}, "500 transactions/s offered"),
        ({"kind": "ycsb", "target_per_s": 9000}, "9,000 operations/s offered"),
    ],
)
def test_a_workload_in_a_list_says_its_rate_in_the_unit_of_the_tool(driver: dict[str, object], said: str) -> None:
    assert said in summary_of(Workload(body={"driver": driver, "phases": []}))


def test_a_limit_of_the_rate_is_no_offered_rate() -> None:
    body = {"driver": {"kind": "hey", "connections": 8, "limit_rps": 50}, "phases": []}
    assert "offered" not in summary_of(Workload(body=body))
