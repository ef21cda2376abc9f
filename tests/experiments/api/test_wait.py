"""Waiting for a verdict, as CI does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from django.core.signals import request_started
from django.db import connection
from django.test import Client

from experiments.models import Member, Run
from tests.experiments.api.conftest import ApiClient, MakeApi


def test_the_answer_comes_when_the_run_ends(transactional_db: None, admin: Member, make_api: MakeApi) -> None:
    run = Run.objects.create(team=admin.team, number=1, state="measuring")
    header, started = make_api(admin).header, Event()

    def note(**_: object) -> None:
        started.set()

    def wait() -> dict[str, object]:
        try:
            found: dict[str, object] = ApiClient(header, Client()).get("/runs/1/verdict?wait=60").json()
            return found
        finally:
            connection.close()

    request_started.connect(note)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        assert started.wait(120)
        Run.objects.filter(pk=run.pk).update(state="finished", outcome="succeeded", validity="valid")
        late = waiting.result(120)
    request_started.disconnect(note)
    assert (late["outcome"], late["finished"]) == ("pass", True)


def test_an_unfinished_run_is_told_as_such_when_the_time_is_over(admin: Member, make_api: MakeApi) -> None:
    Run.objects.create(team=admin.team, number=1, state="measuring")
    answer = make_api(admin).get("/runs/1/verdict?wait=0").json()
    assert (answer["outcome"], answer["finished"]) == ("inconclusive", False)
