from __future__ import annotations

import logging
import sys

from benchhub.logs import LineFormatter


def line(message: str, **extra: object) -> str:
    record = logging.makeLogRecord({"name": "a.b", "levelname": "INFO", "msg": message, "created": 0.25, "msecs": 250})
    vars(record).update(extra)
    return LineFormatter().format(record)


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
