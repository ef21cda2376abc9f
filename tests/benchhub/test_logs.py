from __future__ import annotations

import asyncio
import json
import logging
import sys
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from agents.base.log_context import bound
from agents.base.redaction import without_secrets
from benchhub.logs import ContextFilter, JsonFormatter, LineFormatter


def made(message: str, **extra: object) -> logging.LogRecord:
    record = logging.makeLogRecord({"name": "a.b", "levelname": "INFO", "msg": message, "created": 0.25, "msecs": 250})
    vars(record).update(extra)
    return record


def line(message: str, **extra: object) -> str:
    record = made(message, **extra)
    ContextFilter().filter(record)
    return LineFormatter().format(record)


def as_json(message: str, **extra: object) -> dict[str, str]:
    record = made(message, **extra)
    ContextFilter().filter(record)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    return dict(json.loads(text))


def test_a_record_is_one_line_with_its_extras() -> None:
    assert line("run taken", run=7, owner="w 1") == '1970-01-01T00:00:00.250Z INFO a.b run taken run=7 owner="w 1"'


def test_line_breaks_cannot_forge_a_second_record() -> None:
    assert line("bad\r\n1970 ERROR forged").count("\n") == 0


def test_a_traceback_stays_on_the_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        text = line("failed", exc_info=sys.exc_info())

    assert "\n" not in text
    assert "ValueError: broken" in text


def test_everything_logged_inside_a_piece_of_work_carries_its_ids_also_in_its_tasks() -> None:
    async def work() -> str:
        with bound(run=7, host="sut-1"):
            task = asyncio.create_task(other())
        return await task

    async def other() -> str:
        with bound(step="tune"):
            return line("applied")

    assert asyncio.run(work()).endswith("applied run=7 host=sut-1 step=tune")
    assert line("after").endswith("after")


def test_an_extra_of_the_record_wins_over_the_context() -> None:
    with bound(host="sut-1"):
        assert line("seen", host="driver-1").endswith("seen host=driver-1")


def test_a_failed_request_that_is_logged_after_its_middleware_still_has_its_id() -> None:
    assert line("Not Found", request=SimpleNamespace(benchhub_id="abc")).endswith("request_id=abc")


def test_as_json_each_record_is_one_object_with_the_same_facts() -> None:
    with bound(run=7, fence=12):
        found = as_json('a "quoted"\nmessage', queue="runs")

    assert found == {
        "time": "1970-01-01T00:00:00.250Z",
        "level": "INFO",
        "logger": "a.b",
        "message": 'a "quoted"\nmessage',
        "run": "7",
        "fence": "12",
        "queue": "runs",
    }


def test_a_database_that_is_away_costs_one_line_and_no_traceback() -> None:
    try:
        raise OperationalError("server closed the connection unexpectedly\n")
    except OperationalError:
        text = line("Internal Server Error: /t/perf/", exc_info=sys.exc_info())

    assert text.endswith('/t/perf/ database_error="server closed the connection unexpectedly"')


KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text, secret",
    [
        ("token bh_a1b2c3_Zm9vYmFyX3NlY3JldA refused", "Zm9vYmFyX3NlY3JldA"),
        ("Too Many Requests: /s/N4mBXdU9ciImDybasXkA1JA4gBaFKPJU/", "N4mBXdU9ciImDybasXkA1JA4gBaFKPJU"),
        ("Authorization: Bearer 0123456789abcdef", "0123456789abcdef"),
        (f"could not read {KEY} here", "b3BlbnNzaC1rZXktdjEAAAAA"),
        (f"torn {KEY[:60]}", "b3BlbnNz"),
        ("redis://user:hunter22@redis:6379/0 is away", "hunter22"),
        ("connect postgresql://bench:s3cret@db/bench", "s3cret"),
        ("java -Djavax.net.ssl.keyStorePassword=changeit -jar x", "changeit"),
        ("password=opensesame", "opensesame"),
    ],
)
def test_what_looks_like_a_secret_is_in_no_line(text: str, secret: str) -> None:
    assert secret not in without_secrets(text)
    assert secret not in line(text)
    assert secret not in line("extra", detail=text)
    try:
        raise ValueError(text)
    except ValueError:
        assert secret not in json.dumps(as_json("failed", exc_info=sys.exc_info()))


def test_what_is_no_secret_stays() -> None:
    text = "run 7 (#3): claimed on http://127.0.0.1:8000/t/perf/ with fence 12, key ssh-ed25519 AAAAC3Nz"

    assert without_secrets(text) == text
