"""How log lines look: what they are about (run, host, step, request), in one of two formats, without secrets."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator

from django.db import InterfaceError, OperationalError

from agents.base.log_context import current
from agents.base.redaction import without_secrets

# What every record has, and what libraries add that says the message once more.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {
    *("message", "asctime", "request", "status_code", "server_time", "color_message", "data"),
}


class ContextFilter(logging.Filter):
    """Gives each record the ids of the work that it is part of; a record's own `extra` wins."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in current().items():
            if name not in vars(record):
                setattr(record, name, value)
        # Django logs a failed request after all middleware is through: the request still knows its id.
        request_id = getattr(getattr(record, "request", None), "benchhub_id", None)
        if request_id and "request_id" not in vars(record):
            record.request_id = request_id
        if record.exc_info and isinstance(record.exc_info[1], OperationalError | InterfaceError):
            # A database that is away fails every request: one line each is enough, the place in the code says nothing.
            record.database_error = str(record.exc_info[1]).strip()
            record.exc_info = None
        return True


class LineFormatter(logging.Formatter):
    """One event, one line: time in UTC, level, logger, message, then `key=value` for each extra.

    Line breaks inside a message or a traceback are written as \\n, so that nobody can forge a second line.
    """

    def format(self, record: logging.LogRecord) -> str:
        parts = [_moment(record), record.levelname, record.name, without_secrets(record.getMessage())]
        parts += [f"{key}={_text(value)}" for key, value in _extras(record)]
        if record.exc_info:
            parts.append("traceback=" + json.dumps(without_secrets(self.formatException(record.exc_info))))
        return " ".join(parts).replace("\r", "\\r").replace("\n", "\\n")


class JsonFormatter(logging.Formatter):
    """One event, one line, one JSON object: time, level, logger, message, each extra, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        fields |= {key: value for key, value in _extras(record) if key not in fields}
        if record.exc_info:
            fields["traceback"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(fields)


FORMATTERS = {"line": LineFormatter, "json": JsonFormatter}


def _moment(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _extras(record: logging.LogRecord) -> Iterator[tuple[str, str]]:
    for key, value in vars(record).items():
        if key not in _STANDARD:
            yield key, without_secrets(str(value))


def _text(value: str) -> str:
    return json.dumps(value) if " " in value or '"' in value else value
