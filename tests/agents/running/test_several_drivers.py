"""Several driver hosts at once: shares of the load, one start, one report, and nothing half done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import ValidationError

from agents import events as e
from agents.base.errors import ConnectError, PlanError
from agents.base.session import Session
from agents.drivers import DRIVERS
from agents.drivers.shares import share_of, share_words
from agents.events import LoadPart
from agents.fingerprint import fingerprint
from agents.plan import build_plan
from agents.remote.ssh import connect
from agents.running.common_start import spread_s
from agents.spec import HostAddress, RunSpec
from tests.agents.run_lab import Lab, Watched, file_step, lab, lab_hosts, needs_wrk, port_is_free
from tests.agents.specs import address, make_spec
from tests.sshd import SshdHost, exists, running_sshd

__all__ = ["lab", "lab_hosts"]  # fixtures

TOOLS: list[tuple[dict[str, Any], int, dict[str, Any]]] = [
    ({"kind": "wrk", "connections": 640, "threads": 16}, 2, {"connections": 320, "threads": 16}),
    (
        {"kind": "wrk2", "connections": 90, "threads": 10, "offered_rate_rps": 300_000},
        3,
        {"connections": 30, "offered_rate_rps": 100_000},
    ),
    (
        {"kind": "h2load", "connections": 10, "rate_per_connection_rps": 7},
        2,
        {"connections": 5, "rate_per_connection_rps": 7},
    ),
    ({"kind": "hey", "connections": 4, "limit_rps": 5.0}, 2, {"connections": 2, "limit_rps": 2.5}),
    ({"kind": "k6", "users": 8, "max_users": 16, "arrival_rate_rps": 100}, 4, {"users": 2, "max_users": 4}),
    ({"kind": "jmeter", "users": 1000, "loops": 10}, 2, {"users": 500, "loops": 10}),
    ({"kind": "vegeta", "offered_rate_rps": 1000}, 2, {"offered_rate_rps": 500, "connections": 10_000}),
    (
        {"kind": "command", "argv": ["bench", "{connections}"], "connections": 6},
        3,
        {"connections": 2},
    ),
]


@pytest.mark.parametrize(("options", "hosts", "expected"), TOOLS, ids=lambda value: str(value)[:30])
def test_each_host_does_its_share_of_the_load(options: dict[str, Any], hosts: int, expected: dict[str, Any]) -> None:
    tool = DRIVERS[options["kind"]].model_validate(options)
    share = share_of(tool, hosts)
    assert {name: getattr(share, name) for name in expected} == expected
    assert share_of(tool, 1) is tool


@pytest.mark.parametrize(
    ("options", "hosts", "problem"),
    [
        ({"kind": "wrk", "connections": 5, "threads": 1}, 2, "5 connections cannot be divided evenly over 2"),
        ({"kind": "wrk", "connections": 8, "threads": 8}, 2, "wrk cannot run with its share"),
        ({"kind": "vegeta", "offered_rate_rps": 100}, 3, "100 requests/s cannot be divided evenly over 3"),
        ({"kind": "k6", "users": 4, "script": "export default function () {}"}, 2, "a script of its own decides"),
        ({"kind": "command", "argv": ["bench"]}, 2, "neither connections nor offered_rate_rps"),
    ],
)
def test_a_load_that_cannot_be_divided_is_refused(options: dict[str, Any], hosts: int, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        share_of(DRIVERS[options["kind"]].model_validate(options), hosts)


def test_what_is_divided_is_known_of_every_tool() -> None:
    for tool in DRIVERS.values():
        assert tool.divided.keys() <= tool.model_fields.keys()


def test_the_share_in_words() -> None:
    tool = DRIVERS["wrk2"].model_validate({"connections": 90, "threads": 10, "offered_rate_rps": 300_000})
    assert share_words(tool, 3) == "30 of 90 connections, 100,000 of 300,000 requests/s"


def two_drivers(**workload: Any) -> RunSpec:
    return make_spec(drivers=(address("one"), address("two")), workload=workload)


def test_a_specification_names_every_host_by_its_part() -> None:
    spec = two_drivers()
    assert {role: host.name for role, host in spec.hosts.items()} == {"sut": "sut", "driver": "one", "driver-2": "two"}
    assert fingerprint(spec, driver_version="4.2", profile_digest="a") != fingerprint(
        make_spec(), driver_version="4.2", profile_digest="a"
    )
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec


def test_a_specification_without_drivers_twice_the_same_or_with_a_rest_is_refused() -> None:
    body = two_drivers().model_dump()
    with pytest.raises(ValidationError, match="named only once"):
        RunSpec.model_validate(body | {"drivers": [body["drivers"][0]] * 2})
    with pytest.raises(ValidationError, match="at least 1 item"):
        RunSpec.model_validate(body | {"drivers": []})
    with pytest.raises(ValidationError, match="3 connections cannot be divided evenly over 2 driver hosts"):
        two_drivers(driver={"kind": "wrk", "connections": 3, "threads": 1})


def test_the_plan_shows_all_hosts_and_what_each_does() -> None:
    plan = build_plan(two_drivers())
    items = {phase.name: phase.items for phase in plan.phases}
    assert [item.host for item in items["facts"]] == ["sut", "one", "two"]
    assert [item.host for item in items["measure"]] == ["one", "two"]
    for item in items["measure"]:
        assert " -c1 " in item.commands[0]
        assert item.note == "Its share: 1 of 2 connections. The tools of all hosts begin together."
    assert [item.host for item in items["start"][1:]] == ["one", "two"]


def part(role: str, late_s: float | None, error_s: float = 0.0) -> LoadPart:
    return LoadPart("http://sut/", 0, {}, None, role, late_s, error_s)


@pytest.mark.parametrize(
    ("parts", "spread"),
    [
        ([part("driver", 0.0, 0.01), part("driver-2", 0.5, 0.02)], 0.53),
        ([part("driver", 0.1, 0.01), part("driver", 0.3, 0.01)], 0.2),  # one clock is not wrong against itself
        ([part("driver", 0.0), part("driver-2", 0.1), part("driver-3", -0.2)], 0.3),
        ([part("driver", 0.0), part("driver-2", None)], None),
        ([], None),
    ],
)
def test_the_spread_of_the_starts(parts: list[LoadPart], spread: float | None) -> None:
    assert spread_s(parts) == (None if spread is None else pytest.approx(spread))


@pytest.fixture(scope="module")
def second_driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshdHost]:
    with running_sshd(tmp_path_factory.mktemp("second")) as host:
        yield host


@dataclass
class Three(Watched):
    """A run on a SUT and two driver hosts; `refused` are hosts that take no login."""

    second: SshdHost | None = None
    refused: set[str] = field(default_factory=set)

    async def connect(self, address: HostAddress) -> Session:
        if address.name in self.refused:
            raise ConnectError(f"{address.name} refuses the login.", hint="Is the key there?", permanent=True)
        if address.name != "second":
            return await super().connect(address)
        assert self.second is not None
        return await connect(self.second.login("second"), self.second.private_key)


def spec_of(lab: Lab, second: SshdHost, *steps: dict[str, Any], connections: int = 2) -> RunSpec:
    body = lab.spec(*steps, phases=(("warm_up", 1), ("measure", 2))).model_dump()
    body["workload"]["driver"]["connections"] = connections
    body["drivers"] += (address("second", port=second.port, user=second.user, host_key=second.host_key).model_dump(),)
    return RunSpec.model_validate(body)


def left_on(*hosts: SshdHost) -> list[str]:
    return [path.name for host in hosts for path in (host.home / ".benchhub/runs").glob("*")]


@needs_wrk
async def test_two_hosts_load_together_and_their_reports_add_up(lab: Lab, second_driver: SshdHost) -> None:
    watched = Three(lab, second=second_driver)
    record = await watched.run(spec_of(lab, second_driver, file_step(lab), connections=6))
    assert record.failed is None, watched.log
    started = record.started_jobs
    assert (started["load-1"].role, started["load-1-1"].role) == ("driver", "driver-2")
    measured = record.reports[1]
    one, two = (part.report for part in measured.parts)
    assert [part.role for part in measured.parts] == ["driver", "driver-2"]
    for name in ("requests", "bytes", "throughput_rps", "connections"):
        assert measured.report[name] == pytest.approx(one[name] + two[name])
    assert one["connections"] == two["connections"] == 3
    assert min(one["requests"], two["requests"]) > 0
    assert "latency_p99_ms" not in measured.report
    assert any("percentiles cannot be averaged" in note for note in measured.report["notes"])
    assert measured.start_spread_s is not None
    assert measured.output.count("Running 2s test") == 2
    assert {sample.role for sample in watched.of(e.Samples)} == {"sut", "driver", "driver-2"}
    assert record.configuration is not None
    assert {path.partition(".")[0] for path in record.configuration.values} >= {"sut", "driver", "driver-2"}
    assert record.restored == e.Restored({})
    assert (lab.etc / "app.conf").read_text() == "as it was\n"
    assert port_is_free(lab.port)
    assert not any(exists(int(pid)) for pid in lab.starts)
    assert len(lab.starts) == 4
    assert left_on(lab.sut, lab.driver, second_driver) == []


async def test_one_host_that_refuses_the_login_leaves_all_of_them_untouched(lab: Lab, second_driver: SshdHost) -> None:
    watched = Three(lab, second=second_driver, refused={"second"})
    record = await watched.run(spec_of(lab, second_driver, file_step(lab)))
    assert record.failed is not None
    assert record.failed.phase == "connect"
    assert "second refuses the login" in record.failed.message
    assert (record.facts, record.jobs, record.intended) == ({}, {}, {})
    assert record.restored == e.Restored({})
    assert left_on(lab.sut, lab.driver, second_driver) == []
