"""What outlives the job, so that a job that runs again goes on with what it started."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from clients.python.benchhub_client.connection import Trouble


class State:
    """A file with the key before the request is sent, and with what was started after it.

    Another request than the one in the file is another start. Without a path nothing is kept.
    """

    def __init__(self, path: str | None, address: str, body: dict[str, Any]) -> None:
        self.path = path
        self.request = hashlib.sha256(json.dumps([address, body], sort_keys=True).encode()).hexdigest()
        self.key = self.started = ""
        if not path or not os.path.exists(path):
            return
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            if found["request"] == self.request:
                self.key, self.started = str(found["key"]), str(found["started"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Trouble(f"{path} is no state file of benchhub-ci ({error}); remove it to start anew.") from error

    def write(self, key: str, started: str) -> None:
        if not self.path:
            return
        part = f"{self.path}.part"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump({"request": self.request, "key": key, "started": started}, file)
            os.replace(part, self.path)
        except OSError as error:
            raise Trouble(f"The state cannot be written: {error}") from error
