"""How log lines look."""

from __future__ import annotations

import json
import logging
import time

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "request", "status_code", "server_time"}


class LineFormatter(logging.Formatter):
    """One event, one line: time in UTC, level, logger, message, then `key=value` for each extra.

    Line breaks inside a message or a traceback are written as \\n, so that nobody can forge a second line.
    """

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        parts = [f"{moment}.{int(record.msecs):03d}Z", record.levelname, record.name, record.getMessage()]
        parts += [f"{key}={_text(value)}" for key, value in vars(record).items() if key not in _STANDARD]
        if record.exc_info:
            parts.append("traceback=" + json.dumps(self.formatException(record.exc_info)))
        return " ".join(parts).replace("\r", "\\r").replace("\n", "\\n")


def _text(value: object) -> str:
    text = str(value)
    return json.dumps(text) if " " in text or '"' in text else text
