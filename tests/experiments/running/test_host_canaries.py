"""Short checks of a host: on a real one over SSH, beside no run, and before an experiment's verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.running.canary_checks import CanaryReading
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_run
from experiments.judging.evidence.host_canaries import host_history, hosts_before
from experiments.judging.gate.decision import experiment_gate
from experiments.models import Experiment, Host, HostCanary, Member
from experiments.registry.errors import Conflict
from experiments.registry.experiments.rules import Rules
from experiments.registry.hosts.canaries import are_due, keep_readings, request_canaries
from experiments.registry.hosts.host_keys import key_row
from experiments.registry.hosts.keys import seal
from experiments.running.executing.host_canaries import perform_canaries
from experiments.running.queue.dispatch import claim_next, hold_for_canaries, let_go_after_canaries
from experiments.telling.reports.report import report_of
from tests import needs
from tests.experiments.api.conftest import MakeApi, make_api
from tests.experiments.conftest import ready_host
from tests.frontend.test_forms_access import address, signed_in
from tests.sshd import running_sshd

__all__ = ["make_api"]

pytestmark = pytest.mark.django_db


def made_experiment(admin: Member, stock: dict[str, Any], rules: Rules | None = None) -> Experiment:
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    return create_experiment(
        admin, name="q", workload=stock["workload"], candidates=[Candidate("a", **sides)], rules=rules or Rules()
    )


def test_a_free_host_is_checked_over_ssh_and_keeps_nothing_of_it(admin: Member, tmp_path: Path) -> None:
    with running_sshd(tmp_path) as sshd:
        host = ready_host(admin, "sut", address=sshd.address, port=sshd.port, user=sshd.user)
        host.host_key, host.private_key = sshd.host_key, seal(sshd.private_key, row=key_row(host))
        host.save()
        request_canaries(admin, host)
        perform_canaries(host.pk)
        assert list(sshd.home.glob("canary*")) == []
    host.refresh_from_db()
    assert (host.last_canaries["state"], host.canaries_until) == ("ok", None)
    figures = {one.check: one.value for one in host_history(host)}
    assert (figures["cpu"] or 0) > 1000
    assert bool(figures["disk"]) == bool(needs.place("fio"))


def test_a_host_that_a_run_has_is_not_checked_and_no_run_starts_beside_a_check(
    admin: Member, stock: dict[str, Any]
) -> None:
    sut: Host = stock["sut"]
    assert hold_for_canaries(sut) == ""
    assert "being checked already" in hold_for_canaries(sut)
    run = launch_run(admin, Choice(**stock))
    assert claim_next("a worker") is None
    let_go_after_canaries(sut.pk)
    claimed = claim_next("a worker")
    assert claimed is not None
    assert claimed.pk == run.pk
    assert f"Run #{run.number} is using sut-1" in hold_for_canaries(sut)
    with pytest.raises(Conflict, match=f"Run #{run.number} is using sut-1"):
        request_canaries(admin, sut)
    Host.objects.filter(pk=sut.pk).update(last_canaries={"state": "pending"})
    perform_canaries(sut.pk)  # it was asked for before the run came: nobody logs in
    sut.refresh_from_db()
    assert (sut.last_canaries["state"], HostCanary.objects.count()) == ("failed", 0)


def test_checks_are_due_once_for_each_host_of_an_experiment(admin: Member, stock: dict[str, Any]) -> None:
    experiment = made_experiment(admin, stock, rules=Rules(canaries_first=True))
    hosts = {"sut": stock["sut"].pk, "driver": stock["drivers"][0].pk}
    assert are_due(experiment, hosts)
    keep_readings(
        (CanaryReading("sut", "cpu", 1.0), CanaryReading("driver", "network", None, "x", "sut")), hosts, experiment
    )
    assert not are_due(experiment, hosts)
    assert not are_due(made_experiment(admin, stock), hosts)


def test_a_host_that_got_slower_is_said_before_the_verdict(
    admin: Member, stock: dict[str, Any], make_api: MakeApi
) -> None:
    experiment = made_experiment(admin, stock)
    hosts = {"sut": stock["sut"].pk}

    def checked(value: float, of: Experiment | None = None) -> None:
        keep_readings((CanaryReading("sut", "cpu", value),), hosts, of)

    for value in (1000.0, 1004.0, 998.0, 1001.0):
        checked(value)
    checked(1003.0, experiment)
    assert hosts_before(experiment).sentence.endswith("5 earlier checks of each are needed to tell of a change.")
    HostCanary.objects.filter(experiment=experiment).update(experiment=None)
    checked(800.0, experiment)
    checked(1000.0)  # what comes later is no past of it
    said = hosts_before(experiment)
    assert said.slower
    assert said.sentence.startswith("sut-1 itself got slower: its CPU loop is \N{MINUS SIGN}20.")
    experiment.state = Experiment.State.FINISHED
    assert experiment_gate(experiment).reasons[0] == said.sentence
    assert report_of(experiment, base_url="http://hub").hosts_before == said.sentence
    client = signed_in(admin)
    page = client.get(address("experiment", admin.team, experiment.pk)).content.decode()
    assert page.index("itself got slower") < page.index("variants by block")
    host_page = client.get(address("host", admin.team, stock["sut"].pk)).content.decode()
    assert "<strong>slower</strong>" in host_page
    api = make_api(admin)
    told = api.get(f"/experiments/{experiment.pk}").json()
    assert (told["hosts_before"], told["canaries"][0]["slower"]) == (said.sentence, True)
    history = api.get("/hosts/sut-1/canaries").json()
    assert [(one["check"], one["slower"], one["earlier"]) for one in history[:2]] == [
        ("cpu", False, 6),
        ("cpu", True, 5),
    ]
    HostCanary.objects.filter(experiment=experiment).update(value=1002.0)
    assert hosts_before(experiment).sentence == "The hosts were checked first: no change in 1 check."
