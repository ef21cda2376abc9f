"""Django's PostgreSQL backend for the one-machine start: same SQL, same driver, the server is ours."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base

from benchhub import embedded

LOOK_EVERY_S = 1.0
"""A web process asks for a connection with each request, and looking costs it more than the connection."""


class DatabaseWrapper(base.DatabaseWrapper):
    """Starts the embedded services when a connection is needed, so commands that need no database start nothing."""

    _looked_s = float("-inf")  # of all: each request has a thread, and with it a wrapper, of its own

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            embedded.ensure(settings.BENCHHUB_DATA_DIR)
            DatabaseWrapper._looked_s = time.monotonic()
        return super().get_new_connection(conn_params)
