"""A site's worker by itself: its keys, its spool, what it makes of answers, and that it has no database."""

from __future__ import annotations

import asyncio
import http.server
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import pytest

from agents import events as e
from agents.base.errors import ConnectError, FenceError, KeepError, MistakeError
from agents.site.delivery import Delivery
from agents.site.door import Door, Refused, StoreLost
from agents.site.keys import Keys
from agents.site.spool import LeftOver, Spool, left_over
from agents.site.store import HttpStore
from agents.site.wire import PROTOCOL, HostWay, RunGiven, Stored
from agents.site.worker import VERSION, SiteWorker, _greet
from agents.spec import HostAddress
from agents.working.lease import handing_over
from agents.working.store import StoreAway
from tests.full_disk import full_above

ROOT = Path(__file__).resolve().parents[3]


class Centre(http.server.ThreadingHTTPServer):
    """A centre that stores events in a list, or answers what it is told to: a text is a proxy's in place of its own."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events: list[Any] = []
        self.asked: list[tuple[str, bytes]] = []
        self.asked_twice = threading.Event()
        self.answer: tuple[int, Any] | None = None
        self.batches: list[int] = []
        self.token = ""
        self.refused = 0
        self.claimed: Callable[[], Any] = dict  # there is nothing to do

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Centre

    def do_PUT(self) -> None:
        self.do_POST()

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.path.partition("?")[0].rpartition("/")[2], body))
        if len(self.server.asked) > 1:
            self.server.asked_twice.set()
        told: Any
        if self.server.token and self.headers["Authorization"] != f"Bearer {self.server.token}":
            self.server.refused += 1
            status, told = 401, {"detail": "no"}
        else:
            status, told = self.server.answer or (200, self._stored(body))
        kind = "application/json" if status == 200 else "application/problem+json"
        if isinstance(told, dict) and status != 200:
            told = {"status": status, **told}
        text = told.encode() if isinstance(told, str) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(told, str) else f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _stored(self, body: bytes) -> Any:
        if self.path.endswith("/claims"):
            return self.server.claimed()
        if self.path.partition("?")[0].endswith("/end"):
            return {"file": ""}
        events = [json.loads(line) for line in body.split(b"\n")]
        self.server.batches.append(len(events))
        self.server.events += events
        return {"last_seq": len(self.server.events), "cancelled": False}

    def log_message(self, *_arguments: Any) -> None:
        pass


@pytest.fixture
def centre() -> Iterator[Centre]:
    with Centre() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def door(centre: Centre) -> Door:
    return Door(centre.url, lambda: "bh_x_y", agent="test")


def delivery(door: Door, folder: Path, patience_s: float = 60) -> Delivery:
    return Delivery(door, 7, 3, 0, Spool(folder, 7, 3, 1), patience_s)


SAMPLES = e.Samples("sut", 1.0, {"cpu.busy_ratio": ("ratio", 0.5)})
STEP = e.PhaseStarted("tune", 1.0)


def test_what_leaves_a_state_is_at_the_centre_when_it_is_stored(centre: Centre, door: Door, tmp_path: Path) -> None:
    async def play() -> Path | None:
        sent = delivery(door, tmp_path)
        for _ in range(3):
            await sent.store(SAMPLES)
        await sent.store(STEP)
        assert [one["kind"] for one in centre.events] == ["samples"] * 3 + ["phase_started"]
        return await sent.close()

    assert asyncio.run(play()) is None
    assert list(tmp_path.iterdir()) == []


def test_readings_are_written_down_while_the_centre_is_away_and_a_step_waits(
    centre: Centre, door: Door, tmp_path: Path
) -> None:
    centre.answer = (503, {})

    async def play() -> None:
        sent = delivery(door, tmp_path)
        for _ in range(5):
            await sent.store(SAMPLES)
        step = asyncio.create_task(sent.store(STEP))
        left = left_over(tmp_path / "7-3.jsonl")
        while left is None or len(left.lines) < 6:
            await asyncio.sleep(0)
            left = left_over(tmp_path / "7-3.jsonl")
        assert not step.done()
        assert (left.run_id, left.fence, left.first) == (7, 3, 1)
        centre.answer = None
        await step
        assert len(centre.events) == 6
        await sent.close()

    asyncio.run(play())


def test_what_is_told_after_a_cut_says_how_long_ago_it_happened(centre: Centre, door: Door, tmp_path: Path) -> None:
    centre.answer = (503, {"detail": "away"})

    async def play() -> float:
        began_s = time.monotonic()
        sent = delivery(door, tmp_path)
        await sent.store(e.Logged("server", ("one",)))
        await asyncio.to_thread(centre.asked_twice.wait, 60)  # there is a quarter of a second between them
        await sent.store(e.Logged("server", ("two",)))
        centre.answer = None
        await sent.flush()
        await sent.close()
        return time.monotonic() - began_s

    took_s = asyncio.run(play())
    first, second = (one["age_s"] for one in centre.events)
    assert second + 0.25 <= first <= took_s
    assert second >= 0


def test_a_batch_is_no_larger_than_what_proxies_take_by_themselves(centre: Centre, door: Door, tmp_path: Path) -> None:
    centre.answer = (503, {"detail": "away"})

    async def play() -> None:
        sent = delivery(door, tmp_path)
        for _ in range(600):
            await sent.store(e.Logged("server", ("x" * 3400,)))
        centre.answer = None
        await sent.flush()
        await sent.close()

    asyncio.run(play())
    assert len(centre.events) == 600
    assert max(len(body) for _, body in centre.asked) <= 1 << 20


@pytest.mark.parametrize("written", (0, 1), ids=("from the beginning", "amid the run"))
def test_on_a_full_disk_each_reading_waits_for_the_centre_and_none_is_lost(
    written: int, centre: Centre, door: Door, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        path = tmp_path / "7-3.jsonl"
        with full_above(1 << 20 if written else 0):
            sent = delivery(door, tmp_path)
        centre.answer = (503, {"detail": "away"})
        for _ in range(written):
            await sent.store(SAMPLES)
        with full_above(path.stat().st_size + 10):
            reading = asyncio.create_task(sent.store(SAMPLES))
            await asyncio.to_thread(centre.asked_twice.wait, 60)
            assert not reading.done()
            left = left_over(path)
            assert (0 if left is None else len(left.lines)) == written
            centre.answer = None
            await reading
            await sent.store(STEP)
        assert len(centre.events) == written + 2
        assert caplog.text.count("--state") == 1

        centre.answer = (503, {"detail": "away"})
        await sent.store(SAMPLES)  # there is room again
        left = left_over(path)
        assert left is not None
        assert left.first + len(left.lines) == written + 4
        centre.answer = None
        await sent.flush()
        assert await sent.close() is None

    asyncio.run(play())


def test_a_state_directory_that_is_gone_ends_no_run(centre: Centre, door: Door, tmp_path: Path) -> None:
    async def play() -> None:
        sent = delivery(door, tmp_path / "gone")
        for event in (SAMPLES, STEP, SAMPLES):
            await sent.store(event)
        await sent.flush()
        assert await sent.close() is None

    asyncio.run(play())
    assert len(centre.events) == 3


def test_what_cannot_be_read_in_the_state_directory_keeps_a_worker_from_no_claim(
    centre: Centre, door: Door, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "7-3.jsonl").mkdir()
    worker = SiteWorker(door, Keys(tmp_path), tmp_path, slots=1, libraries=None)
    for _ in range(2):
        worker._claim()
    assert [path for path, _ in centre.asked] == ["claims"] * 2
    assert caplog.text.count("cannot be told") == 1


def test_a_refused_fence_is_told_to_whoever_stores_next(centre: Centre, door: Door, tmp_path: Path) -> None:
    centre.answer = (409, {"detail": "Another worker holds this run now.", "field": "fence"})

    async def play() -> Path | None:
        sent = delivery(door, tmp_path)
        with pytest.raises(FenceError):
            await sent.store(STEP)
        with pytest.raises(FenceError):
            await sent.store(SAMPLES)
        return await sent.close()

    left = asyncio.run(play())
    assert left is not None
    assert len(left_over(left).lines) == 1  # type: ignore[union-attr]


def test_a_centre_that_stays_away_for_longer_than_the_patience_loses_the_run(
    centre: Centre, door: Door, tmp_path: Path
) -> None:
    centre.answer = (502, {})

    async def play() -> None:
        sent = delivery(door, tmp_path, patience_s=0.1)
        with pytest.raises(StoreLost):
            await sent.store(STEP)
        await sent.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    (
        (401, {"detail": "no"}, Refused),
        (429, {"detail": "slowly"}, StoreAway),
        (302, "elsewhere", StoreAway),
        (200, {"not": "ours"}, StoreAway),
        (404, {"detail": "no such run"}, FenceError),
        (409, {"detail": "another one has it", "field": "fence"}, FenceError),
        (409, {"detail": "it arrived damaged", "field": "sha256"}, StoreAway),
        (400, {"detail": "the request ended before its body"}, StoreAway),
        (422, {"detail": "too large", "field": "file"}, KeepError),
        (422, {"detail": "what?", "field": "events"}, MistakeError),
        (413, {"detail": "larger than 10 MB"}, MistakeError),
        (500, {"detail": "see the log"}, StoreAway),
        (507, {"detail": "no room"}, StoreAway),
    ),
)
def test_answers_of_the_centre_are_one_of_few_things(
    status: int, answer: Any, error: type[Exception], centre: Centre, door: Door
) -> None:
    centre.answer = (status, answer)
    with pytest.raises(error):
        door.ask(Stored, "POST", "/runs/1/lease")


@pytest.mark.parametrize(
    "answer",
    (
        "default backend - 404",
        '{"status": 404, "detail": "no", "field": "fence"}',
        {"status": 418, "detail": "no", "field": "fence"},
        {"title": "Not Found"},
    ),
)
def test_whatever_a_proxy_answers_in_place_of_the_centre_says_nothing_of_the_run(
    answer: Any, centre: Centre, door: Door
) -> None:
    for status in (400, 401, 403, 404, 409, 410, 413, 421, 422, 451, 501, 507, 520, 522, 530):
        centre.answer = (status, answer)
        with pytest.raises(StoreAway, match=rf"HTTP {status}, but not from BenchHub: .*(404|no|Not Found)") as told:
            door.ask(Stored, "POST", "/runs/1/lease")
        assert not isinstance(told.value, Refused)


def run_store(
    door: Door, folder: Path, *, work: Literal["run", "restore"] = "run", ways: dict[str, HostWay] | None = None
) -> HttpStore:
    return HttpStore(run_given(work=work, ways=ways), door, Keys(folder), folder)


def run_given(*, work: Literal["run", "restore"] = "run", ways: dict[str, HostWay] | None = None) -> RunGiven:
    return RunGiven(
        id=7, number=1, key="k", spec={}, fence=3, attempts=1, events=[], last_seq=0, ways=ways or {}, work=work,
        heartbeat_s=1, lease_s=60, patience_s=60, deadman_s=600, max_file_bytes=1 << 20, installation_id="i",
        installation_name="here",
    )  # fmt: skip


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDx1FkK3JrBEAWJ8qfusMvXIUw+xkDzE2wIlhxeSGkiB"


@pytest.mark.parametrize("work", ["run", "restore"])
def test_a_run_that_comes_after_the_worker_was_told_to_stop_is_let_go_and_not_begun(
    work: Literal["run", "restore"], centre: Centre, door: Door, tmp_path: Path
) -> None:
    def claimed() -> Any:  # the question was open when somebody told the worker to stop
        handing_over.set()
        return {"run": run_given(work=work).model_dump(mode="json")}

    centre.claimed = claimed
    try:
        SiteWorker(door, Keys(tmp_path), tmp_path, slots=3, libraries=None).work()
    finally:
        handing_over.clear()
    assert [what for what, _ in centre.asked] == ["claims", "end"]
    assert json.loads(centre.asked[1][1])["how"] == "let_go"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("work", "approved", "said"),
    (
        ("run", KEY, "no key for renamed"),
        ("run", OTHER_KEY, "The approved host key of renamed is not the one that this run was launched with"),
        ("restore", OTHER_KEY, "no key for renamed"),
    ),
)
def test_a_host_must_have_the_key_of_the_launch_and_is_entered_with_the_key_of_its_present_name(
    work: Literal["run", "restore"], approved: str, said: str, door: Door, tmp_path: Path
) -> None:
    at_launch = HostAddress(name="sut", address="127.0.0.1", port=22, user="bench", host_key=KEY)
    way = HostWay(name="renamed", address="127.0.0.1", port=22, user="bench", host_key=approved)
    (tmp_path / "sut").write_text("the key of another host, which has the old name by now")
    (tmp_path / "sut").chmod(0o600)

    async def play() -> None:
        store = run_store(door, tmp_path, work=work, ways={"sut": way})
        with pytest.raises(ConnectError, match=said) as refused:
            await store.connect(at_launch)
        assert refused.value.permanent
        await store.close()

    asyncio.run(play())


def test_a_worker_does_not_tell_the_centre_what_the_centre_has_told_it(
    centre: Centre, door: Door, tmp_path: Path
) -> None:
    """The centre would take it for the word of a host that somebody unknown works on, and take both out of service."""

    async def play() -> None:
        store = run_store(door, tmp_path)
        centre.answer = (404, {"detail": "There is no such run at this site."})
        with pytest.raises(FenceError) as refused:
            await store.beat()
        centre.answer, centre.asked = None, []
        await store.taken_over(refused.value)
        assert centre.asked == []
        centre.answer = (200, {"file": ""})
        await store.taken_over(FenceError("sut belongs to a newer holder: 12", seen=12))
        await store.close()

    asyncio.run(play())
    ((path, body),) = centre.asked
    assert (path, json.loads(body)["how"], json.loads(body)["seen"]) == ("end", "refused", 12)


def test_a_file_that_a_proxy_finds_too_large_is_not_kept_and_the_run_goes_on(
    centre: Centre, door: Door, tmp_path: Path
) -> None:
    async def play() -> None:
        store = run_store(door, tmp_path)
        centre.answer = (413, "<h1>Request Entity Too Large</h1>")
        with pytest.raises(KeepError, match="takes no file of 5 MB"):
            await store.keep_file("log", b"x" * 5_000_000, "text/plain")
        await store.close()

    asyncio.run(play())
    assert [path for path, _ in centre.asked] == ["files"]  # the same one again would be as large


@pytest.mark.parametrize("url", ("http://benchhub.example.com", "ftp://x", "benchhub.example.com"))
def test_the_token_is_not_sent_in_the_clear(url: str) -> None:
    with pytest.raises(ValueError):
        Door(url, lambda: "token", agent="test")


def test_a_netrc_of_the_machine_takes_no_place_of_the_token(
    centre: Centre, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ada password of-another-service\ndefault login x password y\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    centre.token = "bh_x_y"
    assert door.send(Stored, "POST", "/runs/1/events", b'{"kind": "logged"}', query={}).last_seq == 1


def test_the_proxy_of_the_environment_is_used_and_gets_the_token(
    centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", centre.url)
    monkeypatch.setenv("no_proxy", "")
    centre.token = "bh_x_y"
    behind = Door("http://localhost:1", lambda: "bh_x_y", agent="test")
    assert behind.send(Stored, "POST", "/runs/1/events", b'{"kind": "logged"}', query={}).last_seq == 1


def test_a_token_that_was_put_into_the_place_of_a_refused_one_is_used_without_a_restart(
    centre: Centre, tmp_path: Path
) -> None:
    place, batch = tmp_path / "token", tmp_path / "batch"
    place.write_text("old")
    centre.token = "old"
    door = Door(centre.url, place.read_text, agent="test")
    batch.write_bytes(b'{"kind": "samples"}\n{"kind": "logged"}')
    assert door.send(Stored, "POST", "/runs/1/events", batch, query={}).last_seq == 2
    centre.token = "new"
    with pytest.raises(Refused):
        door.send(Stored, "POST", "/runs/1/events", batch, query={})
    assert centre.refused == 1  # the place has the same one: there is nothing to try
    for left in ("", None):
        place.unlink() if left is None else place.write_text(left)
        with pytest.raises(Refused):
            door.send(Stored, "POST", "/runs/1/events", b"{}", query={})
    place.write_text("new")
    assert door.send(Stored, "POST", "/runs/1/events", batch, query={}).last_seq == 4
    assert centre.batches == [2, 2]  # the whole file, from its beginning
    assert door.send(Stored, "POST", "/runs/1/events", batch, query={}).last_seq == 6
    assert centre.refused == 4


def test_a_torn_line_of_the_spool_has_not_happened(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 7, 3, 11)
    spool.add(b'{"kind": "logged"}')
    with spool.path.open("ab") as file:
        file.write(b'{"kind": "sam')
    left = left_over(spool.path)
    assert left is not None
    (line,) = left.lines
    told = json.loads(line)
    assert (left.first, told.pop("age_s") >= 0, told) == (11, True, {"kind": "logged"})
    spool.path.write_bytes(b'{"run": 7')
    assert left_over(spool.path) is None


def test_what_follows_a_line_that_a_loss_of_power_took_has_not_happened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(tmp_path, 7, 3, 11)
    spool.add(b'{"kind": "logged"}')
    with spool.path.open("ab") as file:
        file.write(b"\0" * 4096 + b'\n1.5 {"kind": "samples"}\n')
    left = left_over(spool.path)
    assert left is not None
    assert [json.loads(line)["kind"] for line in left.lines] == ["logged"]
    assert "of 3 events that were left only 1 can be read" in caplog.text
    for head in (b"\0" * 64, b"7", b'{"run": 7}'):
        spool.path.write_bytes(head + b"\n")
        assert left_over(spool.path) is None


def one_claim(door: Door, folder: Path) -> None:
    SiteWorker(door, Keys(folder), folder, slots=1, libraries=None)._claim()


def test_what_was_left_is_told_in_batches_that_proxies_take(centre: Centre, door: Door, tmp_path: Path) -> None:
    spool = Spool(tmp_path, 7, 3, 1)
    for _ in range(600):
        spool.add(b'{"kind": "logged", "lines": ["%s"]}' % (b"x" * 3400))
    one_claim(door, tmp_path)
    assert (len(centre.events), spool.path.exists()) == (600, False)
    assert max(len(body) for _, body in centre.asked) <= 1 << 20


def test_what_was_left_and_no_proxy_takes_keeps_a_worker_from_no_other_run(
    centre: Centre, door: Door, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(tmp_path, 7, 3, 1)
    spool.add(b'{"kind": "logged"}')
    centre.answer = (413, "<h1>Request Entity Too Large</h1>")
    one_claim(door, tmp_path)
    assert ([path for path, _ in centre.asked], spool.path.exists()) == (["events", "claims"], False)
    assert "run 7: 1 events are not told any more" in caplog.text


def test_a_claim_tells_what_the_process_still_works_on_and_not_what_has_ceased_to_beat(
    centre: Centre, door: Door, tmp_path: Path
) -> None:
    worker = SiteWorker(door, Keys(tmp_path), tmp_path, slots=2, libraries=None)
    store = run_store(door, tmp_path)
    worker._live.add(store)

    def told() -> Any:
        worker._claim()
        return json.loads(centre.asked[-1][1])["holds"]

    assert told() == [{"run": 7, "fence": 3}]
    store._beat_at_s -= 3600
    assert told() == []
    centre.answer = (503, {"detail": "away"})
    with pytest.raises(StoreAway):
        asyncio.run(store.beat())
    centre.answer = None
    assert told() == [{"run": 7, "fence": 3}]  # it tries to, which is all that it can do while the link is cut
    worker._live.discard(store)
    assert told() == []
    asyncio.run(store.close())


@pytest.mark.parametrize(
    ("shown", "said"),
    (
        ({}, ""),
        ({"site": "oslo"}, "the token is for the site oslo"),
        ({"version": "99.0", "protocol": 99, "a_field_of_then": 1}, "the centre is BenchHub 99.0, and this worker"),
        ({"version": "0.9.1"}, "the centre is BenchHub 0.9.1, and this worker"),
        ({"version": ""}, "the centre is an older BenchHub, and this worker"),
        ({"protocol": PROTOCOL - 1}, "or another build of it: install the centre's version here"),
    ),
)
def test_a_worker_begins_only_with_a_centre_of_its_own_version_and_says_which_one_to_install(
    shown: dict[str, Any], said: str, centre: Centre, door: Door
) -> None:
    centre.answer = (200, {"site": "berlin", "team": "perf", "protocol": PROTOCOL, "version": VERSION, **shown})
    with pytest.raises(SystemExit, match=said) if said else nullcontext():
        _greet(door, "berlin")


def test_a_claim_that_a_centre_of_another_version_refuses_is_told_in_its_words(
    centre: Centre, door: Door, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.site.worker.LONGEST_POLL_S", 0)  # it waits for that long
    centre.answer = (409, {"detail": "The centre is BenchHub 99.0: install 99.0 at the site.", "field": "version"})
    one_claim(door, tmp_path)
    (record,) = caplog.records
    assert ("install 99.0 at the site" in record.getMessage(), record.exc_info) == (True, None)


def test_what_a_worker_of_before_has_left_is_told_without_an_age(tmp_path: Path) -> None:
    path = tmp_path / "7-3.jsonl"
    path.write_bytes(b'{"run": 7, "fence": 3, "first": 11}\n{"kind": "logged"}\n')
    assert left_over(path) == LeftOver(7, 3, 11, (b'{"kind": "logged"}',))


def test_a_key_is_the_hosts_own_else_the_default_one_and_nobody_elses(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    with pytest.raises(ConnectError, match="no key for a"):
        keys.of("a")
    for name in ("default", "a"):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o600)
    assert (keys.of("a"), keys.of("b"), keys.of("../a")) == ("a", "default", "default")
    (tmp_path / "a").chmod(0o644)
    with pytest.raises(ConnectError, match="read by others"):
        keys.of("a")


def test_the_worker_loads_neither_django_nor_a_client_of_a_database_or_broker() -> None:
    loaded = "import agents.site.worker, sys; print(*sorted(sys.modules))"
    told = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {name.partition(".")[0] for name in told.stdout.split()}
    assert names & {"django", "psycopg", "redis", "celery", "kombu"} == set()


@pytest.mark.parametrize(
    ("change", "said"),
    (
        ({"--keys": "nowhere"}, "--keys: nowhere is no directory"),
        ({"--token-file": "nowhere"}, "No such file"),
        ({"--url": "http://benchhub.example.com"}, "only sent over https"),
    ),
)
def test_what_cannot_work_is_said_in_words(change: dict[str, str], said: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("bh_x_y")
    given = {
        "--url": "http://127.0.0.1:1", "--token-file": str(tmp_path / "token"), "--site": "berlin",
        "--keys": str(tmp_path), "--state": str(tmp_path / "state"),
    }  # fmt: skip
    words = [word for pair in (given | change).items() for word in pair]
    command = [sys.executable, str(ROOT / "manage.py"), "site-worker", *words]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 1
    assert said in told.stderr
