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


EQUAL = {"proxy": 0.98, "app": 0.97, "database": 0.98}


@pytest.mark.parametrize(
    ("own", "role", "said"),
    [
        (
            {"proxy": 0.1, "app": 0.62, "database": 0.22},
            "app",
            "the app's own processes used 62 %, those of database 22 %, proxy 10 %.",
        ),
        ({"proxy": 0.2, "app": 0.3, "database": 0.27}, "", "were about equally full (98 %)."),
        (
            {"proxy": 0.04, "app": 0.2, "database": 0.06},
            "",
            "their own processes used 30 % in all, so other programs filled them.",
        ),
        ({"proxy": 0.7, "app": 0.9, "database": 0.6}, "", "were about equally full (98 %)."),
        ({"proxy": 0.1, "app": 0.62, "database": None}, "", "were about equally full (98 %)."),
    ],
    ids=("one machine's work", "no clear order", "others' work", "more than one machine's work", "one was not seen"),
)
def test_members_that_may_share_cpus_are_told_apart_by_their_processes(
    own: dict[str, float | None], role: str, said: str
) -> None:
    found = limit_of(EQUAL, own)
    assert found is not None
    assert found.role == role
    assert said in found.sentence


def test_a_single_server_has_no_members_to_compare() -> None:
    assert limit_of({"sut": 0.99}) is None
