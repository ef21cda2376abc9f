"""Hosts, queue and settings, as people use them."""

from __future__ import annotations

from typing import Any

import pytest

from agents.facts.access import Access
from agents.remote.address import HostKey, fingerprint, new_key_pair
from agents.running.outfit import HostFinding
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import AuditEntry, HardwareProfile, Host, HostProfile, Member, Role, Run, Token
from experiments.registry.hosts.inventory import add_host, check_state, update_host
from experiments.registry.hosts.machines import recognise
from experiments.registry.hosts.sites import add_site
from frontend.pages.hosts.forms import AddressField
from frontend.pages.hosts.views import install_command
from frontend.shared.hardware import groups, headline
from tests.experiments.conftest import HOST_KEY, MakeMember, admin, make_member, stock, team
from tests.frontend.flat import flat
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "stock", "team"]


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are hints; these tests look at what PostgreSQL holds."""
    monkeypatch.setattr("experiments.registry.workers.outbox.hint", lambda *_given: None)
    monkeypatch.setattr("experiments.registry.hosts.inventory.send", lambda task, host_id: None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.0.0.5", ("10.0.0.5", 22)),
        ("arm-1.lab:2222", ("arm-1.lab", 2222)),
        ("fe80::1", ("fe80::1", 22)),
        ("[fe80::1]", ("fe80::1", 22)),
        ("[fe80::1]:2222", ("fe80::1", 2222)),
    ],
)
def test_an_address_may_carry_a_port(text: str, found: tuple[str, int]) -> None:
    field = AddressField()
    assert field.clean(text) == found
    assert field.clean(field.prepare_value(found)) == found


@pytest.mark.parametrize("text", ["host:0", "host:99999", "host:ssh", "[fe80::1]2222"])
def test_a_wrong_port_is_refused(text: str, admin: Member) -> None:
    form = {"name": "h", "address": text, "user": "bench", "roles": "both"}
    answer = signed_in(admin).post(address("new_host", admin.team), form)
    assert answer.status_code == 422
    assert "is not a port" in answer.content.decode()


def test_four_fields_add_a_host_and_its_page_leads_on(admin: Member) -> None:
    client = signed_in(admin)
    form = {"name": "arm-1", "address": "10.0.0.5:2222", "user": "bench", "roles": "sut"}
    answer = client.post(address("new_host", admin.team), form)
    host = Host.objects.get()
    assert answer.headers["Location"] == address("host", admin.team, host.pk)
    text = client.get(answer.headers["Location"]).content.decode()
    assert host.last_check["state"] == "pending"
    assert 'hx-trigger="load delay:1s"' in text
    assert "Make it ready" in text
    assert install_command(host).startswith("echo 'ssh-ed25519 ")
    assert " | ssh -p 2222 bench@10.0.0.5 " in install_command(host)
    assert "PRIVATE KEY" not in text


def test_a_bad_private_key_is_named_and_the_other_fields_stay(admin: Member) -> None:
    form = {"name": "arm-1", "address": "10.0.0.5", "user": "bench", "roles": "sut", "private_key": "nonsense"}
    answer = signed_in(admin).post(address("new_host", admin.team), form)
    assert answer.status_code == 422
    assert "This is not a private key" in answer.content.decode()
    assert 'value="arm-1"' in answer.content.decode()
    assert Host.objects.count() == 0


def test_the_offered_key_is_shown_and_approved_as_shown(admin: Member, stock: dict[str, Any]) -> None:
    host, client = stock["sut"], signed_in(admin)
    Host.objects.filter(pk=host.pk).update(host_key="", offered_host_key=HOST_KEY, state="new")
    page = client.get(address("host", admin.team, host.pk))
    assert page.context["offered"] == (HostKey(HOST_KEY),)
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in page.content.decode()
    assert "It is the same: approve" in flat(page.content.decode())
    url = address("host_action", admin.team, host.pk, "approve")
    client.post(url, {"fingerprint": "SHA256:other"})
    assert Host.objects.get(pk=host.pk).host_key == ""
    client.post(url, {"fingerprint": fingerprint(HOST_KEY)})
    assert Host.objects.get(pk=host.pk).host_key == HOST_KEY


def test_both_keys_of_a_host_that_changed_stand_side_by_side_until_somebody_decides(
    admin: Member, stock: dict[str, Any], make_member: MakeMember
) -> None:
    host, client = stock["sut"], signed_in(admin)
    new = HostKey(" ".join(new_key_pair("")[1].split()[:2]))
    Host.objects.filter(pk=host.pk).update(offered_host_key=new.line, state="unreachable")
    url = address("host", admin.team, host.pk)
    text = client.get(url).content.decode()
    assert "Is this still the same host?" in text
    assert text.index(fingerprint(HOST_KEY)) < text.index(new.fingerprint)
    assert "It is the new key of this host: approve" in flat(text)
    looking = signed_in(make_member(admin.team, Role.VIEWER, "vera")).get(url).content.decode()
    assert new.fingerprint in looking
    assert "approve</button>" not in looking
    client.post(address("host_action", admin.team, host.pk, "approve"), {"fingerprint": new.fingerprint})
    assert Host.objects.get(pk=host.pk).host_key == new.line
    assert "Is this still the same host?" not in client.get(url).content.decode()


def test_what_a_host_lacks_stands_on_its_page_with_the_line_that_mends_it(admin: Member, stock: dict[str, Any]) -> None:
    finding = HostFinding("java", "missing", "No Java on the PATH.", "sudo apt-get install -y java <b>")
    Host.objects.filter(pk=stock["sut"].pk).update(last_check=check_state("ok", "Logged in.", "", (finding,)))
    client = signed_in(admin)
    for url in (address("host", admin.team, stock["sut"].pk), address("own_hosts", admin.team)):
        text = client.get(url).content.decode()
        assert "No Java on the PATH." in text
        assert "sudo apt-get install -y java &lt;b&gt;" in text


def test_one_click_tests_all_hosts(admin: Member, stock: dict[str, Any]) -> None:
    answer = signed_in(admin).post(address("check_hosts", admin.team))
    assert answer.headers["Location"] == address("own_hosts", admin.team)
    assert {host.last_check["state"] for host in Host.objects.all()} == {"pending"}


def test_a_host_behind_another_is_added_with_its_way(admin: Member, stock: dict[str, Any]) -> None:
    form = {"name": "far", "address": "10.9.0.5", "user": "bench", "roles": "sut", "data_address": "10.8.0.5"}
    client = signed_in(admin)
    client.post(address("new_host", admin.team), form | {"jump": stock["sut"].pk})
    far = Host.objects.get(name="far")
    assert (far.jump, far.data_address) == (stock["sut"], "10.8.0.5")
    assert "Put the key on sut-1 as well" in client.get(address("host", admin.team, far.pk)).content.decode()


def test_another_way_to_a_host_is_tested_at_once_and_another_label_is_not(admin: Member) -> None:
    """What the old address answered is not said of the new one."""
    host = add_host(admin, name="sut-1", address="10.0.0.5", port=2222, user="bench", roles="sut")
    refused = check_state("failed", "10.0.0.5:2222 cannot be reached: the connection was refused.")
    Host.objects.filter(pk=host.pk).update(last_check=refused)
    client, url = signed_in(admin), address("edit_host", admin.team, host.pk)
    form = {"name": "sut-1", "address": "10.0.0.5:2222", "user": "bench", "roles": "sut"}
    client.post(url, form | {"labels": "rack=4"})
    assert Host.objects.get(pk=host.pk).last_check == refused
    client.post(url, form | {"address": "10.0.0.5"})
    assert Host.objects.get(pk=host.pk).last_check["state"] == "pending"
    Host.objects.filter(pk=host.pk).update(last_check=refused)
    client.post(url, form | {"address": "10.0.0.5", "user": "tuner"})
    assert Host.objects.get(pk=host.pk).last_check["state"] == "pending"


def test_an_address_that_changed_keeps_nothing_of_the_test_of_the_old_one(admin: Member) -> None:
    host = add_host(admin, name="sut-1", address="10.0.0.5", port=2222, user="bench", roles="sut")
    Host.objects.filter(pk=host.pk).update(last_check=check_state("failed", "refused"))
    assert update_host(admin, host, port=22).last_check == {}


def test_a_dirty_host_is_cleared_with_a_reason_only(admin: Member, stock: dict[str, Any]) -> None:
    host, client = stock["sut"], signed_in(admin)
    Host.objects.filter(pk=host.pk).update(state="dirty", state_reason="vm.swappiness is 60")
    page = client.get(address("host", admin.team, host.pk))
    assert "vm.swappiness is 60; a run waits until it is ready." in page.content.decode(), "the preflight says it"
    url = address("host_action", admin.team, host.pk, "clear")
    client.post(url, {"reason": " "})
    assert Host.objects.get(pk=host.pk).state == "dirty"
    client.post(url, {"reason": "rebooted"})
    assert Host.objects.get(pk=host.pk).state == "ready"


def test_a_run_on_two_names_of_one_machine_does_not_wait_for_itself(admin: Member, stock: dict[str, Any]) -> None:
    sut, driver = stock["sut"], stock["drivers"][0]
    for host in (sut, driver):
        recognise(host.pk, Access("bench", boot_id="x"))
    run = launch_run(admin, Choice(**stock))
    Host.objects.filter(pk__in=(sut.pk, driver.pk)).update(leased_by=run)
    page = signed_in(admin).get(address("host", admin.team, sut.pk)).content.decode()
    assert f"This is the same machine as\n        {driver.name}" in page
    assert "no run starts here" not in page


def test_drain_undrain_grant_and_revoke(admin: Member, stock: dict[str, Any], make_member: MakeMember) -> None:
    host, client, launcher = stock["sut"], signed_in(admin), make_member(admin.team, Role.LAUNCHER)

    def do(action: str, **data: Any) -> None:
        client.post(address("host_action", admin.team, host.pk, action), data)
        host.refresh_from_db()

    do("drain")
    assert host.state == "drained"
    do("undrain")
    assert host.state == "ready"
    do("grant", member=launcher.pk)
    assert host.grants.get().member == launcher
    do("revoke", member=launcher.pk)
    assert not host.grants.exists()
    assert client.post(address("host_action", admin.team, host.pk, "explode")).status_code == 404


def test_only_a_host_that_nothing_was_measured_on_is_removed(admin: Member, stock: dict[str, Any]) -> None:
    client = signed_in(admin)
    mistyped = add_host(admin, name="sut-l", address="10.0.0.9", port=22, user="bench", roles="sut")
    launch_run(admin, Choice(**{name: stock[name] for name in ("application", "recipe", "workload", "sut", "drivers")}))
    gone = client.post(address("host_action", admin.team, mistyped.pk, "remove"), follow=True).content.decode()
    assert "sut-l is removed, with its key" in gone
    for host in (stock["sut"], *stock["drivers"]):
        kept = client.post(address("host_action", admin.team, host.pk, "remove"), follow=True).content.decode()
        assert f"{host.name} cannot be removed" in kept
    assert set(Host.objects.values_list("name", flat=True)) == {"sut-1", "driver-1"}
    before = AuditEntry.objects.get(action="host.remove").before
    assert before is not None
    assert before["address"] == "10.0.0.9"


def test_a_host_shows_its_hardware_and_what_changed(admin: Member, stock: dict[str, Any]) -> None:
    host, client = stock["sut"], signed_in(admin)
    for number, release in enumerate(("6.1.0", "6.18.44")):
        facts = {"kernel.release": release, "cpu.model": "Neoverse-N1", "memory.total_bytes": str(2**34)}
        profile = HardwareProfile.objects.create(team=admin.team, digest=f"d{number}", facts=facts)
        HostProfile.objects.create(host=host, profile=profile, last_seen_at=f"2026-01-0{number + 1}T00:00Z")
        Host.objects.filter(pk=host.pk).update(profile=profile)
    text = client.get(address("host", admin.team, host.pk)).content.decode()
    assert "Neoverse-N1" in text
    assert "16 GiB" in text
    differences = client.get(address("profile_diff", admin.team, host.pk)).context["differences"]
    assert [(d.path, d.values) for d in differences] == [("kernel.release", ("6.1.0", "6.18.44"))]


def test_no_fact_is_lost_between_the_groups() -> None:
    facts = {"cpu.model": "X", "cpu.flags": "a b", "nic.eth0": "up", "java.path.version": "21", "odd": "1"}
    shown = [fact for group in groups(facts) for fact in (*group.facts, *group.more)]
    assert len(shown) == len(facts)
    assert headline(facts).cpu == "X"
    assert headline({}).memory == ""


def test_the_hosts_page_needs_the_same_queries_for_many_hosts(
    admin: Member, stock: dict[str, Any], django_assert_max_num_queries: Any
) -> None:
    client = signed_in(admin)
    run, site = launch_run(admin, Choice(**stock)), add_site("berlin")
    profile = HardwareProfile.objects.create(team=admin.team, facts={"cpu.model": "X"}, digest="f" * 64)
    for number in range(20):
        known = {"site": site, "profile": profile, "leased_by": run}
        Host.objects.create(team=admin.team, name=f"h{number}", address="10.0.0.1", user="b", **known)
    client.get(address("hosts", admin.team))
    with django_assert_max_num_queries(11):
        client.get(address("hosts", admin.team))


def test_a_token_is_shown_once(admin: Member) -> None:
    client, url = signed_in(admin), address("tokens", admin.team)
    answer = client.post(url, {"name": "ci", "scopes": ["read", "launch"], "days": "30"})
    secret = answer.context["secret"]
    assert secret.startswith("bh_")
    assert "no-store" in answer.headers["Cache-Control"]
    assert secret not in client.get(url).content.decode()
    token = Token.objects.get()
    client.post(address("revoke_token", admin.team, token.pk))
    token.refresh_from_db()
    assert token.revoked_at is not None


@pytest.mark.parametrize("form", [{"name": ""}, {"days": "0"}, {"days": "9999"}, {"scopes": ["admin"]}])
def test_a_wrong_token_form_makes_no_token(team: Any, make_member: MakeMember, form: dict[str, Any]) -> None:
    client = signed_in(make_member(team, Role.LAUNCHER))
    answer = client.post(address("tokens", team), {"name": "ci", "scopes": ["read"], "days": "30"} | form)
    assert answer.status_code == 422
    assert Token.objects.count() == 0


def test_members_see_only_their_own_tokens(admin: Member, team: Any, make_member: MakeMember) -> None:
    signed_in(admin).post(address("tokens", team), {"name": "admins", "scopes": ["read"], "days": "30"})
    assert "admins" not in signed_in(make_member(team, Role.EDITOR)).get(address("tokens", team)).content.decode()


def test_a_new_member_gets_an_account_whose_password_is_shown_once(admin: Member) -> None:
    client, url = signed_in(admin), address("settings", admin.team)
    answer = client.post(url, {"username": "grace", "role": "editor"})
    password = answer.context["password"]
    added = Member.objects.get(user__username="grace")
    assert added.role == "editor"
    assert added.user.check_password(password)
    assert password not in client.get(url).content.decode()
    assert password not in str(list(AuditEntry.objects.values_list("after", flat=True)))
    assert "already" in client.post(url, {"username": "grace", "role": "viewer"}).content.decode()


def test_an_existing_user_joins_without_a_new_password(admin: Member) -> None:
    from django.contrib.auth import get_user_model

    user = get_user_model().objects.create_user("known", password="as before it was")
    answer = signed_in(admin).post(address("settings", admin.team), {"username": "known", "role": "viewer"})
    assert answer.context["password"] == ""
    user.refresh_from_db()
    assert user.check_password("as before it was")


def test_the_last_admin_stays(admin: Member, make_member: MakeMember) -> None:
    client, url = signed_in(admin), address("member_change", admin.team, admin.pk)
    client.post(url, {"role": "viewer"})
    client.post(url, {"remove": "1"})
    admin.refresh_from_db()
    assert admin.role == "admin"
    make_member(admin.team, Role.ADMIN)
    client.post(url, {"role": "viewer"})
    admin.refresh_from_db()
    assert admin.role == "viewer"


def test_only_admins_change_members(team: Any, admin: Member, make_member: MakeMember) -> None:
    client = signed_in(make_member(team, Role.EDITOR))
    assert client.post(address("settings", team), {"username": "eve", "role": "admin"}).status_code == 403
    assert client.post(address("member_change", team, admin.pk), {"remove": "1"}).status_code == 403


def test_the_audit_shows_what_changed(admin: Member, stock: dict[str, Any]) -> None:
    signed_in(admin).post(address("host_action", admin.team, stock["sut"].pk, "drain"))
    text = signed_in(admin).get(address("audit", admin.team)).content.decode()
    assert "host.state" in text
    assert "drained" in text


def test_the_demo_history_is_deleted_and_real_runs_stay(admin: Member, stock: dict[str, Any]) -> None:
    Run.objects.create(team=admin.team, number=1, is_demo=True)
    Run.objects.create(team=admin.team, number=2)
    client = signed_in(admin)
    assert "Delete demo history" in client.get(address("settings", admin.team)).content.decode()
    client.post(address("delete_demo", admin.team))
    assert [run.number for run in Run.objects.all()] == [2]
    assert "Delete demo history" not in client.get(address("settings", admin.team)).content.decode()
