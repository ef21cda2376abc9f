"""The library's pages: what is shipped, a form that says what does not fit, and New experiment filled in."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from lxml import html

from experiments.asking.library.catalogue import names, templates, tuning
from experiments.models import Experiment, HardwareProfile, Host, Member, Recipe, Role, Run, Team, Tuning
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


def test_tuning_searches_are_beside_the_experiments_of_their_work_and_are_found_by_their_words(page: Client) -> None:
    text = flat(page.get("/t/perf/library/").content.decode())
    listed = sum(len(tuning(name).works) for name in names("tunings"))
    assert text.count("Tune…") == text.count('<span class="chip">tuning search</span>') == listed
    assert "4 experiments, 1 tuning search" in text
    found = page.get("/t/perf/library/", {"q": "survivor_ratio"}).context["works"]
    assert [one.name for work in found for one in work["tunings"]] == ["tune-jvm"]
    all_of_them = page.get("/t/perf/library/", {"q": "Tuning search"}).context["works"]
    assert {one.name for work in all_of_them for one in work["tunings"]} == set(names("tunings"))


@pytest.mark.parametrize("name", names("tunings"))
def test_the_page_of_a_tuning_search_says_what_is_tried_and_what_is_unsafe_and_why(name: str, page: Client) -> None:
    shown, text = tuning(name), page.get(f"/t/perf/library/{name}/").content.decode()
    document: Any = html.fromstring(text)
    assert [row.text_content().split()[0] for row in document.xpath("//*[@id='tried']//tbody/tr")] == [
        one["name"] for one in shown.space["parameters"]
    ]
    said = [tuple(flat(cell.text_content()) for cell in row) for row in document.xpath("//*[@id='unsafe']//tbody/tr")]
    assert said == list(shown.unsafe.items())
    assert f"{shown.budget_runs} runs at most" in text
    assert all(source.url in text for source in shown.source)
    assert "unsafe:" in document.get_element_by_id("yaml").text_content()


def test_bounds_conditions_and_mixtures_of_a_tuning_search_are_in_words(page: Client) -> None:
    jvm = flat(page.get("/t/perf/library/tune-jvm/").content.decode())
    for words in ("G1, Parallel, Serial", "128 to 1024, by orders of magnitude", "only when collector = G1, Parallel"):
        assert words in jvm
    assert "Throughput, 3 % or more" in jvm
    connectors = flat(page.get("/t/perf/library/tune-tomcat-connectors/").content.decode())
    assert "Never together: <code>min_spare_threads &gt; max_threads</code>" in connectors


@pytest.mark.parametrize("name", names("tunings"))
def test_an_installed_tuning_search_is_filled_in_and_starts_when_it_is_sent(
    name: str, page: Client, hosts: dict[str, int]
) -> None:
    places = {f"s_{one}": f"/opt/{one}" for one in ("tomcat_home", "liberty_home", "rest_war", "jmeter_home")}
    answer = page.post(f"/t/perf/library/{name}/", {**hosts, **places, "scale_choice": "small"})
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/t/perf/experiments/tunings/new/")
    shown = page.get(answer["Location"]).content.decode()
    assert f'href="/t/perf/library/{name}/#unsafe"' in shown
    sent: dict[str, list[str]] = {}
    document: Any = html.fromstring(shown)
    for field, value in document.forms[-1].form_values():
        sent.setdefault(field, []).append(value)
    started = page.post(answer["Location"], sent)
    assert started.status_code == 302, started.context["form"].errors
    made, shipped = Tuning.objects.get(), tuning(name)
    assert (made.name, made.metric, made.budget_runs) == (shipped.title, shipped.decides, shipped.budget_runs)
    assert made.limits == [{"metric": "errors_total", "at_most": 0.0, "at_least": None}]
    assert made.labels == {"library": name, "scale": "small"}
    assert made.space["forbidden"] == shipped.space.get("forbidden", [])
    bounds = {one["name"]: (one.get("low"), one.get("high")) for one in shipped.space["parameters"]}
    assert {one["name"]: (one["low"], one["high"]) for one in made.space["parameters"]} == bounds
    assert (made.sut_id, [host.pk for host in made.drivers.in_order]) == (hosts["sut"], [hosts["drivers"]])


def test_a_tuning_search_that_is_not_installed_cannot_be_filled_in(page: Client, hosts: dict[str, int]) -> None:
    chosen = f"sut={hosts['sut']}&drivers={hosts['drivers']}"
    for name in ("tune-nginx", "tomcat-baseline", "nothing"):
        assert page.get(f"/t/perf/experiments/tunings/new/?template={name}&{chosen}").status_code == 404
    page.post("/t/perf/library/tune-nginx/", {**hosts, "scale_choice": "small"})
    address = "/t/perf/experiments/tunings/new/?template=tune-nginx"
    assert page.get(f"{address}&{chosen}").status_code == 200
    assert page.get(f"{address}&sut=0&drivers={hosts['drivers']}").status_code == 404


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
