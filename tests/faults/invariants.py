"""What must hold whatever fails, judged over the evidence of a whole play: the event log, the rows, the witness files.

`check(story)` gives the broken invariants in plain words, [] when all hold. Pure: `tests.faults.evidence` gathers a
story from the database and the hosts, and tests doctor one to see that each of these checks can fail.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

OUTCOMES = ("succeeded", "failed", "cancelled", "lost")
DIRTY = "dirty"
CLEARED = "cleared"
"""A line that a person who cleared a host leaves in its `changes`: whoever held it before does not any more."""


@dataclass(frozen=True)
class Event:
    seq: int
    kind: str
    payload: Mapping[str, Any]
    fence: int
    at: datetime


@dataclass(frozen=True)
class RunStory:
    """One run's row, its event log and its artifacts (name -> sha256, content).

    `loads` = phases of its workload; `server_watched` = its server writes down its start; `processes` are "PID NAME" of
    its jobs that live now, on whatever host.
    """

    number: int
    token: str
    sut: str
    drivers: tuple[str, ...]
    state: str
    outcome: str
    validity: str
    restore: str
    fence: int
    attempts: int
    started_at: datetime | None
    finished_at: datetime | None
    errors_total: int | None
    loads: int
    server_watched: bool = True
    finding_levels: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    artifacts: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)
    processes: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        return self.state == "finished"

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    @property
    def lived(self) -> list[Event]:
        """The events up to the end of the run; those after it belong to a dirty host that is put back later."""
        return [event for event in self.events if self.finished_at is None or event.at <= self.finished_at]

    def cookies(self) -> dict[str, str]:
        """Job name -> cookie, as intended first."""
        return {e.payload["name"]: e.payload["cookie"] for e in reversed(self.of("job_intended"))}


@dataclass(frozen=True)
class HostStory:
    """One host. `directories` are those of runs that are still there. `older_starts`, where runs are under way: the
    starts that were seen before the runs were read, so that all of them must be known."""

    name: str
    state: str
    differences: tuple[str, ...] = ()
    leased_by: int | None = None
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    starts: tuple[str, ...] = ()
    older_starts: tuple[str, ...] | None = None
    changes: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    reboots: tuple[datetime, ...] = ()


@dataclass(frozen=True)
class Story:
    """`traces` are all places where text is left (a log, a message, a payload): where -> what stands there."""

    runs: tuple[RunStory, ...]
    hosts: tuple[HostStory, ...]
    traces: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


def check(story: Story, *, ended: bool = True, steady: bool = True) -> list[str]:
    """Broken invariants. `ended` = nothing may be under way any more; else only what must hold at every moment.

    `steady` = the database's clock was never set: else times say nothing of an order, and the witness files alone tell
    whether two runs were on a host.
    """
    checks: list[Callable[[Story], Iterable[str]]] = [
        _one_end, _started_once, _one_change_at_a_time, _fences, _artifacts, _valid, _left_behind, _leases, _secrets,
    ]  # fmt: skip
    if steady:
        checks += [_one_run_per_host, _fences_on_hosts]
    else:
        story = replace(story, runs=tuple(_without_order(run) for run in story.runs))
    if ended:
        checks += [_all_ended, _as_before]
    return [problem for one in checks for problem in one(story)]


def _without_order(run: RunStory) -> RunStory:
    """The run as if it had ended after all of its events, whatever their times say."""
    if run.finished_at is None:
        return run
    return replace(run, finished_at=max([run.finished_at, *(event.at for event in run.events)]))


def _one_end(story: Story) -> Iterator[str]:
    for run in story.runs:
        if run.finished and run.outcome not in OUTCOMES:
            yield f"run #{run.number} is finished without an outcome ({run.outcome!r})"
        if run.finished and run.finished_at is None:
            yield f"run #{run.number} is finished and nobody knows when"
        for kind in ("restored", "failed"):
            if (count := sum(event.kind == kind for event in run.lived)) > 1:
                yield f"run #{run.number} has {count} events {kind!r}: it ended more than once"
        ends = [event.seq for event in run.lived if event.kind == "restored"]
        for event in run.lived:
            if ends and event.seq > ends[0] and event.kind not in ("samples", "logged", "restored"):
                yield f"run #{run.number} goes on with {event.kind!r} after it was restored"
        for event in run.events[len(run.lived) :]:
            if event.fence <= run.lived[-1].fence:
                yield f"run #{run.number} was finished, and its holder went on with {event.kind!r}"
        if run.finished and run.outcome == "succeeded" and not run.of("restored"):
            yield f"run #{run.number} succeeded without a restore"


def _started_once(story: Story) -> Iterator[str]:
    lines = [(host.name, line.split()) for host in story.hosts for line in host.starts]
    starts = Counter(words[1] for _, words in lines if len(words) == 2)
    known: dict[str, str] = {}
    for run in story.runs:
        intended = Counter(event.payload["name"] for event in run.of("job_intended"))
        for name, count in intended.items():
            if count > 1:
                yield f"run #{run.number} intended {name} {count} times"
        cookies = run.cookies()
        known |= {cookie: f"{name} of run #{run.number}" for name, cookie in cookies.items()}
        for name, cookie in cookies.items():
            if starts[cookie] > 1:
                yield f"run #{run.number} started {name} {starts[cookie]} times"
        if run.finished and run.outcome == "succeeded":
            server = ("server",) if run.server_watched else ()
            for name in (*server, *(f"load-{index}" for index in range(run.loads))):
                if not starts[cookies.get(name, "")]:
                    yield f"run #{run.number} succeeded and {name} was never started"
    for host in story.hosts:
        for line in host.starts if host.older_starts is None else host.older_starts:
            if len(words := line.split()) != 2 or words[1] not in known:
                yield f"{host.name} started something that no run had intended: {line!r}"


def _one_run_per_host(story: Story) -> Iterator[str]:
    for host in story.hosts:
        for first, second in itertools.pairwise(_runs_on(host, story)):
            if first.finished_at is None or _began(second) < first.finished_at:
                yield f"{host.name} was used by runs #{first.number} and #{second.number} at the same time"
    for run in story.runs:
        for event in run.events:
            if run.started_at and event.at < run.started_at:
                yield f"run #{run.number} has an event from before its hosts were leased"
                break


def _runs_on(host: HostStory, story: Story) -> list[RunStory]:
    """The runs that used the host, in the order in which they were claimed."""
    return sorted((run for run in story.runs if host.name in (run.sut, *run.drivers) and run.started_at), key=_began)


def _began(run: RunStory) -> datetime:
    assert run.started_at is not None
    return run.started_at


def _one_change_at_a_time(story: Story) -> Iterator[str]:
    for host in story.hosts:
        holder, ended = "", set()
        for line in host.changes:
            word, _, token = line.partition(" ")
            if word == CLEARED:
                holder = ""
            elif word == "end":
                if holder not in ("", token):
                    yield f"{host.name}: {token} was undone while {holder} held the host"
                ended.add(token)
                holder = "" if holder == token else holder
            elif token in ended:
                yield f"{host.name}: {token} was applied again after it had been undone"
            elif holder not in ("", token):
                yield f"{host.name}: {token} was applied while {holder} held the host"
            else:
                holder = token


def _fences(story: Story) -> Iterator[str]:
    for run in story.runs:
        for earlier, later in itertools.pairwise(run.events):
            if later.fence < earlier.fence:
                yield f"run #{run.number}: event {later.seq} has fence {later.fence}, after one with {earlier.fence}"
            if later.seq <= earlier.seq:
                yield f"run #{run.number}: event {later.seq} comes after event {earlier.seq}"
        if run.events and (greatest := max(event.fence for event in run.events)) > run.fence:
            yield f"run #{run.number} has an event with fence {greatest}, which nobody claimed ({run.fence})"
        fences = {event.fence for event in run.lived}
        if len(fences) > run.attempts:
            yield f"run #{run.number} has events of {len(fences)} holders in {run.attempts} attempts"


def _fences_on_hosts(story: Story) -> Iterator[str]:
    for host in story.hosts:
        used = [run for run in _runs_on(host, story) if run.lived]
        for first, second in itertools.pairwise(used):
            if second.lived[0].fence <= first.lived[-1].fence:
                yield f"{host.name}: run #{second.number} has no greater fence than run #{first.number} before it"


def _artifacts(story: Story) -> Iterator[str]:
    for run in story.runs:
        for name, (sha256, content) in run.artifacts.items():
            if hashlib.sha256(content).hexdigest() != sha256:
                yield f"run #{run.number}: the artifact {name} is not what its checksum says"
        for event in run.of("load_reported"):
            payload = event.payload
            if hashlib.sha256(payload["output"].encode()).hexdigest() != payload["sha256"]:
                yield f"run #{run.number}: the output of load {payload['index']} is not what its checksum says"


def _valid(story: Story) -> Iterator[str]:
    hosts = {host.name: host for host in story.hosts}
    for run in story.runs:
        if run.validity != "valid":
            continue
        reports = [event for event in run.of("load_reported") if event.payload["measured"]]
        why = []
        if len(reports) != 1:
            why.append(f"it has {len(reports)} measured reports")
        for event in reports:
            status, sha256 = event.payload["exit_status"], event.payload["sha256"]
            if type(status) is not int or status != 0:
                why.append(f"the tool's exit status is {status!r}")
            if sha256 not in (kept for kept, _ in run.artifacts.values()):
                why.append("the tool's output was not kept")
        if run.outcome != "succeeded":
            why.append(f"its outcome is {run.outcome!r}")
        if run.errors_total != 0:
            why.append(f"it counts {run.errors_total} errors")
        if set(run.finding_levels) & {"warn", "invalid"}:
            why.append("it has findings against it, such as a saturated driver")
        begun = [event.at for event in run.of("load_started") if event.payload["measured"]]
        for name in {run.sut, *run.drivers} & set(hosts):
            if any(begun and begun[0] <= at <= event.at for at in hosts[name].reboots for event in reports):
                why.append(f"{name} was restarted under the load")
        yield from (f"run #{run.number} counts as valid though {reason}" for reason in why)


def _left_behind(story: Story) -> Iterator[str]:
    dirty = {host.name for host in story.hosts if host.state == DIRTY}
    for run in story.runs:
        for process in run.processes:
            if run.finished and not {run.sut, *run.drivers} & dirty:
                yield f"run #{run.number} is finished, and its process {process} is left"
    for host in story.hosts:
        if host.leased_by is None and host.state != DIRTY:
            for directory in host.directories:
                yield f"{host.name}: the directory {directory} is left"


def _leases(story: Story) -> Iterator[str]:
    finished = {run.number for run in story.runs if run.finished}
    for host in story.hosts:
        if host.leased_by in finished and host.state != DIRTY:  # a dirty one is leased while it is put back
            yield f"{host.name} is still leased by run #{host.leased_by}, which is finished"


def _secrets(story: Story) -> Iterator[str]:
    for what, secret in story.secrets.items():
        for where, text in story.traces.items():
            if secret in text:
                yield f"{what} stands in {where}"


def _all_ended(story: Story) -> Iterator[str]:
    for run in story.runs:
        if not run.finished:
            yield f"run #{run.number} never ended: it is {run.state}"
    for host in story.hosts:
        if host.leased_by is not None:
            yield f"{host.name} is still leased by run #{host.leased_by}"


def _as_before(story: Story) -> Iterator[str]:
    for host in story.hosts:
        differing = sorted(key for key in {*host.before, *host.after} if host.before.get(key) != host.after.get(key))
        if host.state == DIRTY:
            if not host.differences:
                yield f"{host.name} is dirty and nothing says what is not as before"
        elif differing:
            yield f"{host.name} is {host.state}, yet not as before: {', '.join(differing)}"
