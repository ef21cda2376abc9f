"""The library's pages: what is shipped, a form that says what does not fit, and New experiment filled in."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from experiments.asking.library.catalogue import names, templates
from experiments.models import Experiment, HardwareProfile, Host, Member, Recipe, Role, Run, Team
from tests.experiments.conftest import MakeMember, ready_host
from tests.frontend.flat import flat

LAB = {"cpu.online": "0-1", "memory.total_bytes": str(8 << 30), "java.path.version": "17.0.15"}


@pytest.fixture
def hosts(admin: Member) -> dict[str, int]:
    profile = HardwareProfile.objects.create(team=admin.team, digest="a" * 64, facts=LAB)
    found = {"sut": ready_host(admin, "server", roles="sut"), "drivers": ready_host(admin, "loader", roles="driver")}
    Host.objects.update(profile=profile)
    return {name: host.pk for name, host in found.items()}


@pytest.fixture
def page(admin: Member) -> Client:
    client = Client()
    client.force_login(admin.user)
    return client


def test_the_list_shows_every_work_with_its_experiments(page: Client) -> None:
    text = page.get("/t/perf/library/").content.decode()
    for words in ("1. Tomcat on a many-core server", "5. Thread pool against virtual threads", "Import figures"):
        assert words in text
    alike = [one for one in templates() if one.family]
    families = {one.family.title for one in alike if one.family}
    assert text.count("Launch…") == len(names("experiments")) - len(alike) + len(families)


def test_templates_that_differ_in_a_choice_are_one_entry_and_lead_to_each_other(page: Client) -> None:
    text = flat(page.get("/t/perf/library/?q=machines%2C+rest").content.decode())
    assert text.count("Launch…") == text.count(">Two machines, REST</a>") == 1
    assert "Protocol: HTTP; HTTPS" in text
    shown = flat(page.get("/t/perf/library/rest-put-https/").content.decode())
    assert '<strong aria-current="true">PUT alone (wrk)</strong>' in shown
    for other, words in (
        ("rest-put", "HTTP"),
        ("rest-get-https", "GET alone (wrk)"),
        ("rest-two-machines-https", "PUT, GET"),
    ):
        assert re.search(rf'href="/t/perf/library/{other}/"\s*>{re.escape(words)}', shown), other
    assert 'id="choices"' not in page.get("/t/perf/library/tomcat-baseline/").content.decode()


def test_a_template_page_names_its_sources_and_its_published_values(page: Client, hosts: dict[str, int]) -> None:
    text = page.get("/t/perf/library/tomcat-baseline/").content.decode()
    for words in ("What do the access log", "learn.arm.com", "1280", "Where Tomcat 11 is unpacked on the SUT"):
        assert words in text
    assert page.get("/t/perf/library/nothing/").status_code == 404


def test_the_page_says_what_does_not_fit_the_chosen_hosts(page: Client, hosts: dict[str, int]) -> None:
    address = "/t/perf/library/cpu-scaling/fits"
    chosen = {**hosts, "scale_choice": "published", "s_tomcat_home": "/opt/tomcat"}
    assert "server has 2 CPUs, this needs 8: choose the small scale." in page.post(address, chosen).content.decode()
    assert "server has 2 CPUs; this needs 2." in page.post(address, {**hosts, "scale_choice": "small"}).content.decode()
    assert "Choose the hosts" in page.post(address, {}).content.decode()


def test_installing_goes_on_to_new_experiment_filled_in(page: Client, hosts: dict[str, int]) -> None:
    chosen = {**hosts, "scale_choice": "small", "s_tomcat_home": "/opt/tomcat", "s_connections": "64"}
    answer = page.post("/t/perf/library/tomcat-keep-alive/", chosen)
    assert answer.status_code == 302
    form = page.get(answer["Location"]).content.decode()
    assert "Keep-alive limit of Tomcat" in form
    assert 'value="100 requests"' in form
    assert 'value="500000"' in form
    assert "library=tomcat-keep-alive" in form
    assert Recipe.objects.filter(name="Keep-alive limit").count() == 1
    assert not Experiment.objects.exists()


def test_several_driver_hosts_go_on_to_every_variant(page: Client, hosts: dict[str, int], admin: Member) -> None:
    more = ready_host(admin, "loader-2", roles="driver").pk
    chosen = {**hosts, "drivers": [hosts["drivers"], more], "s_tomcat_home": "/opt/tomcat", "scale_choice": "small"}
    address = "/t/perf/library/tomcat-keep-alive/"
    fits = page.post(f"{address}fits", chosen).content.decode()
    assert "Each of 2 driver hosts does its share: 16 of 32 connections." in fits
    odd = page.post(f"{address}fits", {**chosen, "s_connections": "33", "s_threads": "1"}).content.decode()
    assert "33 connections cannot be divided evenly over 2 driver hosts; give a multiple of 2." in odd
    form = page.get(page.post(address, chosen)["Location"])
    variants = [variant for _, variant, _ in form.context["rows"]]
    assert [list(one.initial["drivers"]) for one in variants] == [[hosts["drivers"], more]] * len(variants)


def test_a_system_asks_for_a_host_of_each_member_and_hands_them_on(
    page: Client, hosts: dict[str, int], admin: Member
) -> None:
    address = "/t/perf/library/three-tier/"
    assert "Host of database" in page.get(address).content.decode()
    chosen = {**hosts, "scale_choice": "small", "s_shop_entry": "/opt/shop/shop.js"}
    refused = page.post(address, chosen)
    assert (refused.status_code, refused.context["form"].errors.keys()) == (422, {"m_app", "m_database"})
    members = {f"m_{role}": ready_host(admin, role, roles="sut").pk for role in ("app", "database")}
    answer = page.post(address, chosen | members)
    assert answer.status_code == 302
    form = page.get(answer["Location"]).context["rows"].first
    assert {role: form[role].value() for role in members} == members
    gone = answer["Location"].replace(f"m_app={members['m_app']}", "m_app=0")
    assert page.get(gone).status_code == 404


def test_a_missing_setting_and_a_missing_host_are_shown_at_their_fields(page: Client, hosts: dict[str, int]) -> None:
    answer = page.post("/t/perf/library/tomcat-keep-alive/", {"scale_choice": "small", "sut": hosts["sut"]})
    assert answer.status_code == 422
    assert answer.content.decode().count("errorlist") == 2
    assert not Recipe.objects.exists()


def test_a_template_that_is_not_installed_cannot_be_filled_in(page: Client, hosts: dict[str, int]) -> None:
    chosen = f"template=tomcat-baseline&sut={hosts['sut']}&drivers={hosts['drivers']}"
    assert page.get(f"/t/perf/experiments/new/?{chosen}").status_code == 404


def test_published_figures_are_imported_with_a_button(page: Client, admin: Member) -> None:
    address = "/t/perf/library/published/tomcat-baseline/"
    assert "No run has been made of them yet" in page.get(address).content.decode()
    text = page.post(f"{address}import", follow=True).content.decode()
    assert "3 runs, 2 of them invalid" in text
    assert "the load had stopped after about 25 s of 60 s" in text
    chart = json.loads(text.partition('<script id="published" type="application/json">')[2].partition("</script>")[0])
    active = [one["active"] and round(one["active"], -3) for one in chart["reports"]]
    assert active == [121_000, 143_000, None]
    assert [(one["value"], one["validity"]) for one in chart["reports"]] == [
        (50517.09, "invalid"),
        (59451.85, "invalid"),
        (154479.07, "suspect"),
    ]
    assert Run.objects.for_team(admin.team).filter(validity="invalid").count() == 2


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LAUNCHER])
def test_who_may_not_save_may_look_and_gets_no_buttons(role: Role, team: Team, make_member: MakeMember) -> None:
    client = Client()
    client.force_login(make_member(team, role).user)
    assert "Launch…" not in client.get("/t/perf/library/").content.decode()
    assert client.get("/t/perf/library/tomcat-baseline/").status_code == 200
    assert client.post("/t/perf/library/tomcat-baseline/", {}).status_code == 403
    assert client.post("/t/perf/library/published/tomcat-baseline/import").status_code == 403


def test_the_library_is_searched_in_all_that_a_template_is_made_of(browser: Client) -> None:
    place = reverse("library", args=["perf"])

    def titles(asked: str) -> set[str]:
        works = browser.get(place, {"q": asked}).context["works"]
        return {one.template.name for work in works for one in work["templates"]}

    everything = titles("")
    assert len(everything) > 20
    liberty = titles("LIBERTY virtual")
    assert "liberty-virtual-threads" in liberty < everything
    assert titles("no such words at all") == set()
    assert "Nothing in the library" in browser.get(place, {"q": "nowhere"}).content.decode()
