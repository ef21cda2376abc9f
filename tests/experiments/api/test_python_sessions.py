"""Sessions of code that measures itself: what they refuse at once, and what they keep when their end cannot send it."""

from __future__ import annotations

from typing import Any

import pytest

from clients.python.benchhub_client import Hub, Trouble
from clients.python.benchhub_client.sessions import ALIASES, MOST_CHANNELS, MOST_POINTS, figure_name
from experiments.models import Run

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
