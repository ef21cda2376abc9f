"""How the client of Python speaks HTTP: keys, files that are none, waits, and changes of what there is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from clients.python.benchhub_client import Hub, Run, Trouble
from clients.python.benchhub_client.connection import Api
from experiments.models import Run as StoredRun
from experiments.models import SavedView
from tests.experiments.api.test_benchhub_ci_connection import Flaky, flaky, odd  # noqa: F401 - fixtures

PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title>"


class Door(BaseHTTPRequestHandler):
    """A proxy that shows its sign-in page for `.parquet` and gives files; anything else is over, but run #2 never."""

    asked: list[str]

    def do_GET(self) -> None:
        Door.asked.append(self.path)
        over = b"false" if "/runs/2/" in self.path else b"true"
        content_type, body = "application/json", b'{"number": 1, "finished": ' + over + b"}"
        if ".parquet" in self.path:
            content_type, body = "text/html; charset=utf-8", PAGE
        elif "/artifacts/" in self.path:
            content_type, body = "application/octet-stream", PAGE
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing on the test's output."""


@pytest.fixture
def door() -> Iterator[Hub]:
    Door.asked = []
    server = HTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Hub(f"http://127.0.0.1:{server.server_port}", "bh_a_b", quiet=True)
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_in_place_of_a_file_is_no_file(door: Hub) -> None:
    with pytest.raises(Trouble, match=r'HTTP 200 with a web page titled "Sign in", and not from BenchHub: is http'):
        door.runs_parquet()
    assert len(Door.asked) == 1
    assert door.run(1).file("report.html") == PAGE


def test_no_request_waits_longer_than_proxies_do(door: Hub) -> None:
    door.run(1).wait(timeout_s=3600)
    assert [path for path in Door.asked if "wait=" in path] == ["/api/v1/runs/1/verdict?wait=50"]


def test_a_wait_may_be_without_end_and_does_not_hurry_at_its_end(door: Hub) -> None:
    door.run(1).wait(timeout_s=float("inf"))
    assert Door.asked[1] == "/api/v1/runs/1/verdict?wait=50"
    Door.asked.clear()
    with pytest.raises(Trouble, match="run #2 is not finished after 0 s; it goes on"):
        Run(door, 2).wait(timeout_s=0.2)
    assert len(Door.asked) <= 3


def test_whatever_is_posted_is_tried_again_under_one_key(flaky: str) -> None:  # noqa: F811 - the fixture
    api = Api(flaky, "bh_a_b", 60, "test", lambda _text: None)
    assert api.post("/runs", {}) == {"number": 7}
    first = Flaky.seen.copy()
    assert len(first) == 4
    assert len(set(first)) == 1
    assert len(first[0]) == 32
    api.post("/runs", {})
    assert Flaky.seen[-1] not in first


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/tokens", "/tokens"),
        ("/invitations", "/invitations"),
        ("/invitations/3/resend", "/invitations"),
        ("/shares?x=1", "/shares"),
        ("/webhooks/3/secret", "/webhooks"),
    ],
)
def test_a_secret_is_not_made_twice_when_its_answer_is_lost(
    flaky: str,  # noqa: F811 - the fixture
    path: str,
    place: str,
) -> None:
    api = Api(flaky, "bh_a_b", 60, "test", lambda _text: None)
    for answers_before in range(3):  # 503, a connection that breaks, half an answer
        Flaky.seen = [""] * answers_before
        with pytest.raises(Trouble, match=rf"may have been carried out, .* GET {place} before you try again"):
            api.post(path, {}, key="build-17")
        assert len(Flaky.seen) == answers_before + 1
    assert api.post(path, {}) == {"number": 7}


def test_a_secret_that_was_certainly_not_made_is_asked_for_again(
    odd: Callable[[bool], str],  # noqa: F811 - the fixture
) -> None:
    for address, why in ((f"{odd(False)}/busy", "HTTP 429"), ("http://127.0.0.1:9", "no connection")):
        with pytest.raises(Trouble, match=f"^gave up after 0 s: {why}"):
            Api(address, "bh_a_b", 0, "test", lambda _text: None).post("/tokens", {})


def test_what_there_is_can_be_changed_replaced_and_removed(hub: Hub) -> None:
    view = hub.api.post("/views", {"name": "Nightly", "query": "sort=-number"})
    assert hub.api.patch(f"/views/{view['id']}", {"name": "Daily"})["query"] == "sort=-number"
    assert hub.api.delete(f"/views/{view['id']}")["name"] == "Daily"
    assert not SavedView.objects.exists()
    with pytest.raises(Trouble, match="HTTP 404"):
        hub.api.delete(f"/views/{view['id']}")
    with hub.session() as session:
        session.log(rps=1)
    assert hub.api.put("/runs/1/notes", {"text": "slow disk"})["text"] == "slow disk"
    assert StoredRun.objects.get().notes == "slow disk"
