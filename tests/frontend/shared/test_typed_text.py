"""What was typed into a form that is refused stands in it again, on the page to which the refusal leads."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from lxml import html

from experiments.models import Host, Member
from experiments.registry.notes.chart_notes import annotate, moment_of
from experiments.telling.run_list.saved_views import save_view
from tests.frontend.conftest import MakeRun

LONG = "what I found " * 1000
"""More than any of these fields takes."""


def shown_again(browser: Client, address: str, fields: dict[str, Any]) -> tuple[Any, str]:
    """The form with this address after its refusal, and what the page says above it."""
    answer = browser.post(address, fields, follow=True)
    assert answer.redirect_chain
    assert answer.status_code == 200
    document: Any = html.fromstring(answer.content)
    again = browser.get(answer.redirect_chain[-1][0]).content.decode()
    assert LONG[:60] not in again, "shown once"
    (form,) = document.xpath(f"//form[@action='{address}']")[:1]
    said = " ".join(document.xpath("//*[contains(@class, 'note-bad')]//text()"))
    return form, said


def values_in(form: Any) -> dict[str, str]:
    fields = {
        field.get("name"): field.get("value", "") for field in form.iter("input") if field.get("type") != "hidden"
    }
    return fields | {field.get("name"): (field.text or "").strip() for field in form.iter("textarea")}


@pytest.mark.django_db
def test_a_refused_form_shows_again_what_was_typed_and_names_the_field(
    browser: Client, admin: Member, make_run: MakeRun, stock: dict[str, Any]
) -> None:
    run = make_run(throughput_rps=100.0, measured_at=timezone.now())
    team = admin.team.slug
    note = annotate(admin, run, moment_of(run), "before")
    view = save_view(admin, "Mine", "sort=number", shared=False)
    back = reverse("run", args=[team, run.number])
    cases: list[tuple[str, list[Any], dict[str, Any], str]] = [
        ("run_notes", [run.number], {"notes": LONG, "tags": "a b"}, "Notes"),
        ("run_notes", [run.number], {"notes": "kept", "tags": "x" * 80}, "tag"),
        ("add_timers", [run.number], {"name": "container", "text": LONG}, "timers"),
        ("pin_baseline", [run.number], {"name": LONG}, "name"),
        ("annotate_run", [run.number], {"at_s": "soon", "text": "a pause", "back": back}, "time"),
        ("change_annotation", [note.pk], {"text": LONG, "back": back}, "note"),
        ("new_view", [], {"name": LONG, "query": ""}, "name"),
        ("change_view", [view.pk], {"name": LONG, "query": "", "action": "rename"}, "name"),
        ("bulk_runs", [], {"runs": [run.number], "tags": "x" * 200, "action": "tag", "back": ""}, "tag"),
        ("reserve", [], {"hosts": [stock["sut"].pk], "hours": "many", "reason": "by hand", "back": ""}, "Hours"),
    ]
    for name, ids, fields, named in cases:
        address = reverse(name, args=[team, *ids])
        form, said = shown_again(browser, address, fields)
        assert named.lower() in said.lower(), (name, said)
        shown = values_in(form)
        for field, value in fields.items():
            if field in shown and isinstance(value, str):
                assert shown[field].strip() == value.strip(), (name, field)
    run.refresh_from_db()
    assert run.notes == "", "notes and tags are saved together or not at all"
    (ticked,) = form.xpath(".//input[@name='hosts'][@checked]/@value")
    assert int(ticked) == stock["sut"].pk


@pytest.mark.django_db
def test_the_reason_of_a_dirty_host_is_not_typed_twice(browser: Client, stock: dict[str, Any]) -> None:
    host = stock["sut"]
    Host.objects.filter(pk=host.pk).update(state=Host.State.DIRTY, state_reason="who knows")
    address = reverse("host_action", args=[host.team.slug, host.pk, "clear"])
    form, said = shown_again(browser, address, {"reason": LONG})
    assert values_in(form)["reason"] == LONG
    assert "reason" in said.lower()


@pytest.mark.django_db
def test_a_tick_is_as_it_was_left_and_no_other_form_gets_what_was_typed(
    browser: Client, admin: Member, stock: dict[str, Any]
) -> None:
    team, sut, driver = admin.team.slug, stock["sut"], stock["drivers"][0]
    view = save_view(admin, "Mine", "sort=number", shared=False)
    address = reverse("change_view", args=[team, view.pk])
    form, _ = shown_again(browser, address, {"name": LONG, "shared": "on", "query": "sort=number", "action": "rename"})
    assert form.xpath(".//input[@name='shared']/@checked")
    form, _ = shown_again(browser, address, {"query": "sort=number", "action": "nonsense"})
    shown: Any = html.fromstring(browser.get(f"{reverse('runs', args=[team])}?view={view.pk}").content)
    (name,) = shown.xpath("//input[@id='view-rename']/@value")
    assert name == values_in(form).get("name", "Mine") == "Mine"
    browser.post(reverse("reserve", args=[team]), {"hosts": [sut.pk], "hours": "many", "reason": "of the SUT"})
    assert "of the SUT" not in browser.get(reverse("host", args=[team, driver.pk])).content.decode()
