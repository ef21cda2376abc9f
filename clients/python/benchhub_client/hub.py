"""One installation of BenchHub: launch, wait, verdicts, frames, files, imports."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from .connection import Api, Trouble
from .frames import frame_of
from .login import login_of
from .sessions import Session
from .waiting import verdicts


@dataclass(frozen=True)
class Verdict:
    """What the gate says: `outcome` is pass, fail, inconclusive or error; `finished` False = runs are open.

    `numbers` are the figures behind it, changes in percent with their 95 % interval. `decided_by` is the number of the
    run that decides: the newest try of one that was tried again. None of an experiment.
    """

    outcome: str
    finished: bool
    reasons: tuple[str, ...]
    numbers: tuple[Mapping[str, Any], ...]
    markdown: str
    url: str
    decided_by: int | None = None


@dataclass(frozen=True)
class Run:
    """A run by its number. `data` is what the API said of it when it was asked last."""

    hub: Hub = field(repr=False)
    number: int
    data: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def state(self) -> str:
        """queued, preparing, warming_up, measuring, collecting, restoring or finished, as last asked."""
        return str(self.data["state"])

    @property
    def metrics(self) -> Mapping[str, float]:
        """Figures by name, each in the unit that its name ends with; as last asked. Trouble when nobody asked yet."""
        if "metrics" not in self.data:  # of a session whose token may not read
            raise Trouble(f"Nobody asked for run #{self.number}; `refresh()` does, with a token that may read.")
        found: Mapping[str, float] = self.data["metrics"]
        return found

    @property
    def waiting(self) -> Mapping[str, Any] | None:
        """Why it waits: reason, runs_before, expected_start_at; as last asked. None of a run that does not wait."""
        found: Mapping[str, Any] | None = self.data["waiting"]
        return found

    @property
    def url(self) -> str:
        """The address of its page."""
        return str(self.data["url"])

    def refresh(self) -> Run:
        """The run as it is now."""
        return self.hub.run(self.number)

    def wait(self, timeout_s: float = 86_400) -> Run:
        """The finished run: its newest try when it was tried again. Trouble after `timeout_s` seconds; it goes on."""
        said = self.hub._wait(f"/runs/{self.number}/verdict", f"run #{self.number}", timeout_s)
        return self.hub.run(int(said.get("decided_by") or self.number))

    def verdict(self) -> Verdict:
        """Whether its figures count, or those of its newest try."""
        return self.hub._verdict(f"/runs/{self.number}/verdict", {})

    def cancel(self) -> Run:
        """Ask for its end; its hosts are put back first."""
        return Run(self.hub, self.number, self.hub.api.post(f"/runs/{self.number}/cancel", {}))

    def samples(self, *channels: str, library: str | None = None) -> Any:
        """Every point of the monitors as a data frame: role, channel, unit, at_s (0 = measuring began), value."""
        query = urlencode([("channel", channel) for channel in channels])
        return frame_of(self.hub.api.download(f"/runs/{self.number}/samples.parquet?{query}"), library)

    def log(self, *, after: int = 0, limit: int = 500) -> list[Mapping[str, Any]]:
        """At most `limit` entries of its log behind sequence number `after`: seq, at, source, level, lines."""
        page = self.hub.api.get(f"/runs/{self.number}/log?after={after}&limit={limit}")
        found: list[Mapping[str, Any]] = page["items"]
        return found

    def queue_line(self) -> Mapping[str, Any] | None:
        """Its line of the queue: reason, expected_start_at, expected_end_at.

        None of a run that is finished, and of one that waits behind the first 200. The server thinks the whole queue
        through for it; `waiting` is there already.
        """
        queue = self.hub.api.get("/queue")
        lines: list[Mapping[str, Any]] = [*queue["running"], *queue["waiting"]]
        return next((line for line in lines if line["run"]["number"] == self.number), None)

    def files(self) -> list[str]:
        """The names of what the tools wrote."""
        return [str(one["name"]) for one in self.hub._rows(f"/runs/{self.number}/artifacts")]

    def file(self, name: str) -> bytes:
        """One of its files as the tool wrote it."""
        return self.hub.api.download(f"/runs/{self.number}/artifacts/{quote(name, safe='')}")


@dataclass(frozen=True)
class Experiment:
    """An experiment by its id. `data` is what the API said of it when it was asked last."""

    hub: Hub = field(repr=False)
    id: int
    data: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def url(self) -> str:
        """The address of its page."""
        return str(self.data["url"])

    def wait(self, timeout_s: float = 86_400) -> Experiment:
        """The experiment once all its runs are finished. Trouble after `timeout_s` seconds; it goes on then."""
        self.hub._wait(f"/experiments/{self.id}/verdict", f"experiment {self.id}", timeout_s)
        return self.hub.experiment(self.id)

    def verdict(self, **rules: Any) -> Verdict:
        """What the gate says; `rules` are those of the API: metric=[...], margin_pct=3, baseline="branch:main"."""
        return self.hub._verdict(f"/experiments/{self.id}/verdict", rules)

    def runs(self, library: str | None = None, *, profiled: bool = False) -> Any:
        """Its runs as a data frame, with all figures; with `profiled` also their profiled twins, which count nowhere.

        The column `profiled` marks the twins, which the profiler made slower.
        """
        query = _query({"profiled": True}) if profiled else ""
        return frame_of(self.hub.api.download(f"/experiments/{self.id}.parquet?{query}"), library)


class Hub:
    """One installation, as one member of one team.

    `url` and `token`: else BENCHHUB_URL and BENCHHUB_TOKEN, else what `bh login` kept. A request is tried again, with
    growing pauses, for `patience_s` seconds when the connection breaks or the server is restarted; whatever starts
    something carries an idempotency key, so nothing starts twice.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, patience_s: float = 300, quiet: bool = False
    ) -> None:
        url, token = login_of(url, token)
        self._quiet = quiet
        self.api = Api(url, token, patience_s, "benchhub-client/1.0.0", self._say)

    def me(self) -> Mapping[str, Any]:
        """Who the token acts for: user, team, role, scopes."""
        found: Mapping[str, Any] = self.api.get("/me")
        return found

    def launch(
        self,
        *,
        application: str,
        recipe: str,
        workload: str,
        sut: str,
        drivers: Sequence[str],
        key: str = "",
        **more: Any,
    ) -> Run:
        """Queue a run of stored documents on registered hosts, by their names ("limits@3" is a version).

        `more`: parameters, labels, members, tags, notes, priority, retries. The same `key` starts nothing twice.
        """
        body = {"application": application, "recipe": recipe, "workload": workload, "sut": sut, "drivers": [*drivers]}
        answer = self.api.post("/runs", {**body, **more}, key)
        return Run(self, int(answer["number"]), answer)

    def launch_experiment(
        self, *, name: str, workload: str, variants: Sequence[Mapping[str, Any]], key: str = "", **more: Any
    ) -> Experiment:
        """Store an experiment and launch it. The first variant is the baseline unless another one says `is_baseline`.

        A variant is {"name": ..., "application": ..., "recipe": ..., "sut": ..., "drivers": [...]}, with "parameters".
        `more`: question, repetitions, margin_ratio (0.03 is 3 %), stop_rule, labels (docs/api.md). The same `key`
        starts nothing twice.
        """
        key = key or uuid.uuid4().hex
        body = {"name": name, "workload": workload, "variants": [dict(one) for one in variants], **more}
        made = self.api.post("/experiments", body, key)
        return Experiment(
            self, int(made["id"]), self.api.post(f"/experiments/{made['id']}/launch", {}, f"{key}-launch")
        )

    def launch_copy(self, experiment: str | int, *, key: str = "", **more: Any) -> Experiment:
        """Launch a copy of an experiment, by its name or id; `more`: labels, repetitions, priority, retries."""
        answer = self.api.post("/experiments/copies", {"experiment": experiment, **more}, key)
        return Experiment(self, int(answer["id"]), answer)

    def run(self, number: int) -> Run:
        """The run of this number. Trouble when there is none."""
        return Run(self, number, self.api.get(f"/runs/{number}"))

    def experiment(self, experiment_id: int) -> Experiment:
        """The experiment of this id. Trouble when there is none."""
        return Experiment(self, experiment_id, self.api.get(f"/experiments/{experiment_id}"))

    def runs(self, *, library: str | None = None, **filters: Any) -> Any:
        """All runs of the filters as a data frame: a row each, a column for every figure, label and parameter.

        Filters are those of `GET /runs`: recipe="limits", throughput_rps__gte=5e4, since="2026-08-01",
        number__in=[141, 142], label={"branch": "main"}, param={"heap": "4g"}. Figures are in the unit of their name,
        times in UTC.
        """
        return frame_of(self.runs_parquet(**filters), library)

    def runs_parquet(self, **filters: Any) -> bytes:
        """The same as a file."""
        return self.api.download(f"/runs.parquet?{_query(filters)}")

    def series(self, fingerprint: str, *, library: str | None = None, **filters: Any) -> Any:
        """The runs of a history that count, as a data frame; filters: recipe, since, until."""
        return frame_of(self.api.download(f"/series/{quote(fingerprint, safe='')}.parquet?{_query(filters)}"), library)

    def compare(self, baseline: int, *candidates: int) -> Mapping[str, Any]:
        """What differs between runs: figures, configuration, and what makes them hard to compare."""
        found: Mapping[str, Any] = self.api.get(f"/compare?{_query({'baseline': baseline, 'candidate': candidates})}")
        return found

    def import_file(self, path: str | Path, *, kind: str = "auto", key: str = "", **more: Any) -> list[int]:
        """Store the report of a load tool, or a file of benchmarks, that ran elsewhere; the numbers of its runs.

        `kind` "auto" knows a file by its content. The same `key` stores it once; `api.replayed` says that it was there
        before. `more`: labels, application, recipe, workload, machine, command, measured_at, split, and directions,
        which say what is better where the file does not: {"speed": "higher"}.
        """
        source = Path(path)
        text = source.read_text(encoding="utf-8", errors="surrogateescape")
        if any("\udc80" <= sign <= "\udcff" for sign in text):
            raise Trouble(f"{source} is not text in UTF-8.")
        body = {"kind": kind, "text": text, "file_name": source.name, **more}
        answer = self.api.post("/imports", body, key)
        return [int(number) for number in answer["numbers"] or [answer["number"]]]

    def session(
        self,
        *,
        tool: str = "python",
        history: str = "",
        labels: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        key: str = "",
        **more: Any,
    ) -> Session:
        """For code that measures itself: `with hub.session(labels=...) as s: s.log(rps=..., p99_ms=...)`.

        What was logged becomes one run at the end of the block. Runs with the same `history` continue one series. The
        same `key` stores the same figures once; other figures with it are Trouble, and the run of before stays.
        `more`: application, workload, machine, notes, measured_at (docs/api.md has the fields of `POST /results`).
        """
        body: dict[str, Any] = {"tool": tool, "labels": {**(labels or {})}, "parameters": {**(parameters or {})}}
        return Session(self, {**body, **({"history": history} if history else {}), **more}, key)

    def _stored(self, answer: Mapping[str, Any]) -> Run:
        """The run of a result that was sent, as the answer says."""
        return Run(self, int(answer["number"]), {"state": "finished", "waiting": None, **answer})

    def _read(self, run: Run) -> Run:
        """The whole run, where the token may read it and BenchHub answers: it is there in any case."""
        try:
            return run.refresh()
        except Trouble:
            return run

    def _rows(self, path: str) -> Iterator[Mapping[str, Any]]:
        """All rows of a list that is an array, page by page."""
        limit, cursor = 500, 0
        while rows := self.api.get(f"{path}?limit={limit}&cursor={cursor}"):
            yield from rows
            cursor += len(rows)
            if len(rows) < limit:
                return

    def _verdict(self, path: str, rules: Mapping[str, Any]) -> Verdict:
        said = self.api.get(f"{path}?{_query(rules)}")
        return Verdict(
            outcome=said["outcome"],
            finished=said["finished"],
            reasons=tuple(said["reasons"]),
            numbers=tuple(said["numbers"]),
            markdown=said["markdown"],
            url=said["url"],
            decided_by=said.get("decided_by"),
        )

    def _wait(self, path: str, what: str, timeout_s: float) -> Mapping[str, Any]:
        """The verdict once it is the last one."""
        said: Mapping[str, Any]
        for said in verdicts(self.api, path, timeout_s):
            if said["finished"]:
                return said
        raise Trouble(f"{what} is not finished after {timeout_s:.0f} s; it goes on.")

    def _say(self, text: str) -> None:
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)


def _query(filters: Mapping[str, Any]) -> str:
    """Values as the API reads them.

    A mapping is key=value, several times; several values are one text with commas of a condition (`state__in`), and the
    parameter several times of anything else. Trouble for those of a condition that the text would not hold.
    """
    found: list[tuple[str, str]] = []
    for name, value in filters.items():
        if isinstance(value, Mapping):
            found += [(name, f"{key}={_text(one)}") for key, one in value.items()]
        elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            texts = [_text(one) for one in value]
            found += [(name, _joined(name, texts))] if name.endswith("__in") else [(name, text) for text in texts]
        elif value is not None:
            found.append((name, _text(value)))
    return urlencode(found)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _joined(name: str, texts: Sequence[str]) -> str:
    if not any(texts):
        raise Trouble(f"{name} has no value, which would be no condition at all.")
    if unfit := next((text for text in texts if "," in text), ""):
        raise Trouble(f"{name}: {unfit!r} has a comma, which separates values there; ask for it alone.")
    return ",".join(texts)
