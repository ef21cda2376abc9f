"""The member of a system that limits it is named only where its CPUs say so clearly."""

from __future__ import annotations

import pytest

from experiments.analysis.system_limit import limit_of


@pytest.mark.parametrize(
    ("uses", "role", "said"),
    [
        (
            {"web": 0.4, "database": 0.98},
            "database",
            "The database is the limit: its CPUs were 98 % busy, those of web 40 %.",
        ),
        ({"web": 0.95, "app": 0.5, "database": 0.2}, "web", "those of app 50 %, database 20 %."),
        ({"web": 0.95, "database": 0.9}, "", "the CPUs of web and database were about equally full"),
        ({"web": 0.3, "database": 0.5}, "", "No member's CPUs were used up (database 50 %, web 30 %)"),
        ({"web": 0.3, "database": None}, "", "the CPUs of database were not seen"),
    ],
)
def test_the_limit_of_a_system(uses: dict[str, float | None], role: str, said: str) -> None:
    found = limit_of(uses)
    assert found is not None
    assert found.role == role
    assert said in found.sentence


def test_a_single_server_has_no_members_to_compare() -> None:
    assert limit_of({"sut": 0.99}) is None
