"""Sessions of code that measures itself: what they refuse at once, and what they keep when their end cannot send it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from clients.python.benchhub_client import Hub, Trouble
from clients.python.benchhub_client.connection import Again
from clients.python.benchhub_client.sessions import ALIASES, MOST_CHANNELS, MOST_POINTS, figure_name
from experiments.models import Member, Run
from experiments.registry.teams.tokens import issue

NOBODY = "http://127.0.0.1:9/api/v1"
PERCENTILES = [f"p{name}_ms" for name in ("50", "75", "90", "95", "99", "99_9", "99_99")]


def test_every_short_name_is_a_figure_that_the_server_knows(hub: Hub) -> None:
    for name in (*ALIASES, *PERCENTILES, "latency_p99_9_ms"):
        with hub.session() as session:
            session.log(**{name: 4})
            session.log_own("cart_age_ms", 3.4, unit="ms", better="lower")
        assert session.run is not None
    with hub.session() as session:
        session.log(rps=10, requests=200_000, p50_ms=1, p99_ms=2, p99_9_ms=3.5)
    assert session.run is not None
    assert session.run.metrics["latency_p99.9_ms"] == 3.5
    assert figure_name("up_ms") == "up_ms"


def test_a_session_that_could_not_be_sent_is_sent_again_as_one_run(hub: Hub) -> None:
    here = hub.api.base
    session = hub.session(history="checkout")
    session.sample("heap.used_bytes", 9e8, unit="bytes", at_s=0)
    hub.api.base = NOBODY
    with (
        pytest.raises(Trouble, match=r"no connection to .*\. It keeps its figures: `send\(\)` of the session"),
        session,
    ):
        session.log(rps=100)
    assert (session.run, Run.objects.count()) == (None, 0)
    hub.api.base = here
    sent = [session.send().number for _ in range(2)]
    assert (sent, session.run is not None and session.run.metrics["throughput_rps"]) == ([1, 1], 100)
    assert Run.objects.count() == 1


@pytest.mark.parametrize("more", [{}, {"key": "measured-17"}, {"measured_at": "2026-01-02T03:04:05+01:00"}])
def test_what_is_sent_late_was_measured_when_the_block_ended(hub: Hub, more: dict[str, Any]) -> None:
    here = hub.api.base
    session = hub.session(**more)
    hub.api.base = NOBODY
    began = timezone.now()
    with pytest.raises(Trouble), session:
        session.log(rps=100)
    ended = timezone.now()
    hub.api.base = here
    for _ in range(2):
        session.send()
    measured_at = Run.objects.get().measured_at
    assert measured_at is not None
    if "measured_at" in more:
        assert measured_at == datetime.fromisoformat(more["measured_at"])
    else:
        assert began <= measured_at <= ended


@pytest.mark.parametrize("key", ["", "measured-17"])
def test_a_session_whose_answer_was_lost_is_sent_again_as_the_same_run(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    def lost(*request: Any) -> Any:
        type(hub.api)._once(hub.api, *request)
        raise Again("the connection broke")

    session = hub.session(key=key)
    monkeypatch.setattr(hub.api, "_once", lost)
    with pytest.raises(Trouble, match="the connection broke"), session:
        session.log(rps=100)
    monkeypatch.undo()
    assert Run.objects.count() == 1
    assert [session.send().number for _ in range(2)] == [1, 1]
    assert Run.objects.count() == 1


def test_a_token_that_only_launches_stores_a_session_and_knows_its_run(
    hub: Hub, live_server: LiveServer, admin: Member
) -> None:
    blind = Hub(live_server.url, issue(admin, name="launch", scopes=["launch"])[1], patience_s=0, quiet=True)
    with blind.session() as session:
        session.log(rps=100)
        for number in range(51):  # two requests
            session.sample(f"disk {number}", number, at_s=0)
    run = session.run
    assert run is not None
    assert (run.number, run.state, run.data["validity"], run.url) == (1, "finished", "suspect", hub.run(1).url)
    with pytest.raises(Trouble, match=r"^Nobody asked for run #1; `refresh\(\)` does, with a token that may read"):
        _ = run.metrics
    assert hub.run(1).metrics["throughput_rps"] == 100
    assert hub.run(1).samples(library="polars").height == 51


def test_a_run_that_was_stored_is_never_called_not_sent(hub: Hub) -> None:
    session = hub.session()
    for number in range(51):
        session.sample(f"disk {number}", number, at_s=0)
    session.channels["disk 50"].unit = "requests per second and core"
    said = r"^Run #1 was stored, but not all of its channels: .*`send\(\)` .* again"
    with pytest.raises(Trouble, match=said), session:
        session.log(rps=100)
    assert session.run is not None
    session.channels["disk 50"].unit = "requests/s/core"
    assert session.send().samples("disk 50", library="polars")["unit"].to_list() == ["requests/s/core"]
    assert Run.objects.count() == 1


def test_channels_that_the_server_refuses_are_mended_and_sent_again(hub: Hub) -> None:
    session = hub.session()
    session.sample("heap", 1, unit="bytes", at_s=0)
    session.sample("gone", 1, at_s=0)
    session.channels["heap"].unit = "x" * 21
    with pytest.raises(Trouble, match=r"series\.0\.unit"), session:
        session.log(rps=100)
    session.channels["heap"].unit = "bytes"
    del session.channels["gone"]
    assert session.send().samples(library="polars")["channel"].to_list() == ["heap"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"channel": ""}, "^channel: 1 to 120 characters are needed, not the 0 of ''"),
        ({"channel": " "}, "^channel: 1 to 120"),
        ({"channel": "c" * 121}, "^channel: 1 to 120 characters are needed, not the 121 of 'ccc"),
        ({"channel": "heap\nused"}, r"^channel: 'heap\\nused' has U\+000A, which nobody sees"),
        ({"channel": "heap\u200b"}, r"^channel: .*U\+200B"),
        ({"channel": "heap\ud800"}, r"^channel: .*U\+D800"),
        ({"channel": 7}, "^channel: a text is needed, not 7"),
        ({"unit": "requests per second per core"}, "^unit: 0 to 20 characters are needed, not the 28 of 'requests per"),
        ({"unit": "m\x00s"}, r"^unit: .*U\+0000"),
        ({"unit": None}, "^unit: a text is needed, not None"),
    ],
)
def test_a_channel_that_could_not_be_stored_is_refused_where_it_is_sampled(
    arguments: dict[str, Any], words: str
) -> None:
    session = Hub("http://127.0.0.1:9", "bh_a_b").session()
    with pytest.raises(ValueError, match=words):
        session.sample(**{"channel": "heap", "value": 1, **arguments})
    assert session.channels == {}


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [
        ("Cart age", "ms", "^name: at most 60 small letters, digits, _ and ., a letter first, not 'Cart age'"),
        ("c" * 61, "ms", "^name: at most 60"),
        ("9_lives", "ms", "^name: "),
        (None, "ms", "^name: "),
        ("cart_age", "", "^unit: 1 to 20 characters are needed"),
        ("cart_age", "requests per second per core", "^unit: 1 to 20"),
        ("cart_age", "m\ts", r"^unit: .*U\+0009"),
    ],
)
def test_an_own_figure_that_could_not_be_stored_is_refused_where_it_is_logged(name: Any, unit: str, words: str) -> None:
    session = Hub("http://127.0.0.1:9", "bh_a_b").session()
    with pytest.raises(ValueError, match=words):
        session.log_own(name, 1, unit=unit, better="lower")
    assert session.result["own_metrics"] == {}


def test_names_that_differ_by_spaces_around_them_are_one_channel(hub: Hub) -> None:
    with hub.session() as session:
        session.log(rps=100)
        session.log_own("cart_age", 3, unit=" ms ", better="lower")
        for at_s, channel in enumerate(("heap", " heap", "heap\n")):
            session.sample(channel, 1, unit=" bytes", at_s=at_s)
    assert session.run is not None
    assert session.run.samples(library="polars")["unit"].to_list() == ["bytes"] * 3


def test_a_failure_is_stored_whatever_signs_it_has(hub: Hub) -> None:
    session = hub.session()
    with pytest.raises(RuntimeError), session:
        raise RuntimeError("disk\x00full\ud800")
    assert session.run is not None
    assert session.run.data["failure"] == "RuntimeError: disk\ufffdfull?"


def test_what_the_server_refuses_is_mended_and_sent_again(hub: Hub) -> None:
    session = hub.session(labels={"build": 17})  # type: ignore[dict-item]
    with pytest.raises(Trouble, match=r"labels\.build.*send\(\)"), session:
        session.log(rps=100, speed=3)
    session.result["labels"]["build"] = "17"
    with pytest.raises(Trouble, match="no figure 'speed'"):
        session.send()
    del session.result["metrics"]["speed"]
    assert session.send().data["labels"] == {"build": "17"}


def test_a_failure_that_was_not_stored_is_sent_again_without_figures(hub: Hub) -> None:
    here = hub.api.base
    session = hub.session()
    session.log(rps=100)
    hub.api.base = NOBODY
    with pytest.raises(ZeroDivisionError), session:
        session.log(p99_ms=1 / 0)
    hub.api.base = here
    assert "ZeroDivisionError" in session.send().data["failure"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), "fast", None])
def test_what_is_no_number_is_refused_where_it_is_logged(value: Any) -> None:
    session = Hub("http://127.0.0.1:9", "bh_a_b").session()
    with pytest.raises(ValueError, match=r"^p99_ms: "):
        session.log(rps=1, p99_ms=value)
    with pytest.raises(ValueError, match=r"^value: "):
        session.log_own("cart_age_ms", value, unit="ms", better="lower")
    with pytest.raises(ValueError, match=r"^value: "):
        session.sample("heap.used_bytes", value)
    if value is not None:
        with pytest.raises(ValueError, match=r"^at_s: "):
            session.sample("heap.used_bytes", 1, at_s=value)
    assert (session.result["metrics"], session.result["own_metrics"]) == ({}, {})


def test_a_time_that_falls_and_a_field_that_cannot_be_sent_are_refused_at_once() -> None:
    hub = Hub("http://127.0.0.1:9", "bh_a_b")
    session = hub.session()
    for at_s in (1, 1, 2):
        session.sample("heap.used_bytes", 1, at_s=at_s)
    with pytest.raises(ValueError, match=r"^at_s: the times of heap\.used_bytes must rise, not fall from 2 to 1\.5 s"):
        session.sample("heap.used_bytes", 1, at_s=1.5)
    session.sample("other", 1, at_s=0)
    with pytest.raises(ValueError, match=r"^parameters: Object of type set"):
        hub.session(parameters={"pools": {1, 2}})
    with pytest.raises(ValueError, match=r"^parameters: "):
        hub.session(parameters={"ratio": float("nan")})


def test_more_channels_and_points_than_a_request_takes_are_all_stored(hub: Hub) -> None:
    with hub.session() as session:
        session.log(rps=100)
        for channel, count in {"full": MOST_POINTS, "half": MOST_POINTS // 2, "other half": MOST_POINTS // 2}.items():
            for at_s in range(count):
                session.sample(channel, 0.1 + at_s, unit="bytes", at_s=at_s)
        for number in range(51):
            session.sample(f"disk {number}", number, at_s=0)
        with pytest.raises(ValueError, match="full has 24,000 points, and can have no more"):
            session.sample("full", 1)
    assert session.run is not None
    stored = session.run.samples(library="polars")
    assert stored.height == 2 * MOST_POINTS + 51
    assert stored["channel"].n_unique() == 54
    assert stored.filter(stored["channel"] == "full")["value"].to_list() == [0.1 + at_s for at_s in range(MOST_POINTS)]


def test_a_channel_that_no_run_has_room_for_is_refused_at_once() -> None:
    session = Hub("http://127.0.0.1:9", "bh_a_b").session()
    for number in range(MOST_CHANNELS):
        session.sample(f"disk {number}", 1)
    with pytest.raises(ValueError, match="at most 500, without 'disk 500'"):
        session.sample("disk 500", 1)
    session.sample("disk 499", 1)
