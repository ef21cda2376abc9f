"""Django's PostgreSQL backend for the one-machine start: same SQL, same driver, the server is ours."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base

from benchhub import embedded


class DatabaseWrapper(base.DatabaseWrapper):
    """Starts the embedded services when a connection is needed, so commands that need no database start nothing."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        embedded.ensure(settings.BENCHHUB_DATA_DIR)
        return super().get_new_connection(conn_params)
