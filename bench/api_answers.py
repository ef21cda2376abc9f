"""Records an answer of every operation: experiments/api/plumbing/answers.json, the examples of the OpenAPI schema.

Asks a fresh demonstration that runs with the same BENCHHUB_DATA_DIR:

    BENCHHUB_DATA_DIR=/somewhere bin/demo --port 8765 --detach
    BENCHHUB_DATA_DIR=/somewhere bin/record-answers http://127.0.0.1:8765

It renames the demonstration's hosts and makes runs and documents: use a data directory that you can delete. Lists,
texts and series are shortened, secrets, addresses and paths replaced, and an answer that differs from the stored one
only in its figures and times is left as it is, so recording again shows what has changed. A refused call ends it.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import bench.django_project  # noqa: F401 - before the models
from bench.answer_text import Replacement, shortened
from experiments.api.plumbing.answers import FILE
from experiments.api.plumbing.examples import BODIES

_MOST_S = 900.0
_EVERY_S = 1.0
_A_FILE: Mapping[str, str] = {
    "application/vnd.apache.parquet": "PAR1... (a file)",
    "application/pdf": "%PDF... (a file)",
}
"""What stands for a file that is no text."""


class Refused(Exception):
    """The installation did not do what the story asks for."""


class Player:
    """Sends calls to an installation and keeps what it answers."""

    def __init__(self, url: str, tokens: dict[str, str]) -> None:
        self.url, self.tokens = url.rstrip("/"), tokens
        self.answers: dict[str, Any] = {}
        schema = self._fetch("GET", "/api/v1/openapi.json", None, {})[2]
        self.operations = {
            said["operationId"]: (method.upper(), path, said)
            for path, methods in json.loads(schema)["paths"].items()
            for method, said in methods.items()
        }

    def ask(
        self,
        operation: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        accept: str = "application/json",
        team: str = "demo",
        keep: bool = True,
        **places: Any,
    ) -> Any:
        """The answer of one operation, with its example as the body when none is given."""
        method, path, said = self.operations[operation]
        asked = path.format(**{name: quote(str(value), safe="") for name, value in places.items()})
        asked += f"?{urlencode(query, doseq=True, safe=',=:', quote_via=quote)}" if query else ""
        headers = {"Authorization": f"Bearer {self.tokens[team]}", "Accept": accept}
        data = None
        if "requestBody" in said:
            example = said["requestBody"]["content"]["application/json"]["example"]
            data = json.dumps(BODIES.get(operation, example) if body is None else body).encode()
            headers["Content-Type"] = "application/json"
        status, media, content = self._fetch(method, asked, data, headers)
        if not 200 <= status < 300:
            raise Refused(f"{method} {asked}: {status} {content.decode()}")
        answer = _read(media, content)
        if keep:
            stored = self.answers.setdefault(operation, {"asked": asked, "answers": {}})
            if media == "application/json":
                stored["asked"] = asked
            stored["answers"].setdefault(str(status), {})[media] = answer
        return answer

    def until(self, done: Callable[[], Any]) -> Any:
        """What `done` returns once it is true."""
        end_s = time.monotonic() + _MOST_S
        while not (found := done()):
            if time.monotonic() > end_s:
                raise Refused(f"Waited {_MOST_S:g} s in vain.")
            time.sleep(_EVERY_S)
        return found

    def finish(self, number: int) -> Any:
        """The run, once it has ended."""
        return self.until(
            lambda: (run := self.ask("get_run", number=number, keep=False))["state"] == "finished" and run
        )

    def _fetch(self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]) -> tuple[int, str, bytes]:
        request = urllib.request.Request(self.url + path, data, dict(headers), method=method)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:  # noqa: S310
                return answer.status, answer.headers.get_content_type(), answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.headers.get_content_type(), refusal.read()


def _read(media: str, content: bytes) -> Any:
    if media == "application/json":
        return json.loads(content)
    return _A_FILE.get(media) or content.decode()


def store(answers: Mapping[str, Any], operations: Mapping[str, Any], replacement: Replacement) -> list[str]:
    """Write the file in the order of the schema; returns the operations whose example is another than before."""
    before = json.loads(FILE.read_text()) if FILE.exists() else {}
    after, changed = {}, []
    for name in operations:
        if name not in answers:
            continue
        recorded = replacement.in_all(answers[name])
        recorded["answers"] = shortened(recorded["answers"])
        same = _without_figures(before.get(name)) == _without_figures(recorded)
        after[name] = before[name] if same else recorded
        if not same:
            changed.append(name)
    FILE.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n")
    return changed


def _without_figures(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return re.sub(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", "0", re.sub(r"\b[0-9a-f]{8,64}\b", "0", text))


def main() -> None:
    from bench.api_cleaning import replacement_of
    from bench.api_story import prepare, tell

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="the demonstration's address")
    given = parser.parse_args()
    player = Player(given.url, prepare())
    replacement = replacement_of(player)
    tell(player)
    changed = store(player.answers, player.operations, replacement)
    for name in sorted(set(player.operations) - set(player.answers)):
        print(f"{name}: the story does not send it")
    print(f"{len(player.answers)} operations, {len(changed)} examples changed: {', '.join(changed)}")


if __name__ == "__main__":
    main()
