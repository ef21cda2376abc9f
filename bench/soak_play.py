"""A soak under way: runs are launched all the time, faults come one or two at a time, every invariant is checked."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db.models import Sum
from django.utils import timezone

from bench.soak_faults import FAULTS, Disturbance, Fault, World, patiently
from benchhub.embedded import Places
from experiments.models import Host, Member, Role, Run, Team
from experiments.registry.errors import Conflict
from experiments.registry.hosts.inventory import clear_dirty, request_check
from experiments.running.restoring.requests import request_restore
from lab.lab import Lab, why_not
from tests.faults.evidence import gather
from tests.faults.invariants import CLEARED, check
from tests.faults.stage import Actor, Stage, surroundings
from tests.sshd import running_sshd

TICK_S = 1.0
CHECK_EVERY_S = 60.0
SAMPLE_EVERY_S = 30.0
END_S = 420.0
"""How long, after the last fault, runs and hosts may take to come to rest."""
SYSCTL = "net.ipv4.tcp_fin_timeout"


@dataclass(frozen=True)
class Plan:
    minutes: float
    hosts: int
    workers: int
    seed: int
    only: str = ""
    """Only the faults that have this in their name."""


@dataclass
class Usage:
    """One look at a process: `at_s` since the start of the soak."""

    at_s: float
    rss_bytes: int
    open_files: int


@dataclass
class Report:
    """What came of a soak. `broken` must be empty."""

    mode: str
    seed: int
    minutes: float = 0.0
    runs_by_outcome: dict[str, int] = field(default_factory=dict)
    runs_by_validity: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    adoptions: int = 0
    most_attempts: int = 0
    restores_verified: int = 0
    quarantines: dict[str, int] = field(default_factory=dict)
    returns: dict[str, int] = field(default_factory=dict)
    checks: int = 0
    usage: dict[str, list[Usage]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        return asdict(self)


class Soak:
    """One soak from an empty database to its report."""

    def __init__(self, plan: Plan, world: World, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.world = world
        self.say = say
        self.report = Report("lab" if world.lab else "loopback", plan.seed)
        self._pairs = itertools.cycle(itertools.permutations(world.stage.actors.values(), 2))
        self._started_s = time.monotonic()
        self._checked_s = self._sampled_s = self._started_s
        self._returns: Counter[str] = Counter()
        self._quarantines: Counter[str] = Counter()
        self._dirty: set[str] = set()
        self._broken: dict[str, None] = {}

    def run(self) -> Report:
        self._warm_up()
        end_s = self._started_s + self.plan.minutes * 60
        while time.monotonic() < end_s:
            self._disturb()
            self._pass(self.world.chance.uniform(2.0, 8.0))
        self._come_to_rest()
        self._conclude()
        return self.report

    def _warm_up(self) -> None:
        """Nothing is broken before the first run has come to its end: until then the workers may still be starting."""
        limit_s = time.monotonic() + END_S
        while not patiently(Run.objects.filter(state=Run.State.FINISHED).exists):
            if time.monotonic() > limit_s:
                raise TimeoutError(f"no run ended within {END_S:.0f} s, and nothing was broken yet")
            self._pass(TICK_S)
        self._started_s = time.monotonic()
        self.report.usage.clear()

    # Faults

    def _disturb(self) -> None:
        possible = [f for f in FAULTS if self.plan.only in f.kind and (self.world.lab or not f.lab_only)]
        chosen = self.world.chance.sample(possible, k=min(len(possible), self.world.chance.choice((1, 1, 2))))
        self.say(f"{self._time()} {' + '.join(fault.kind for fault in chosen)}")
        with contextlib.ExitStack() as broken:
            for fault in chosen:
                broken.enter_context(self._recorded(fault))
            self._pass(max(self.world.chance.uniform(*fault.hold_s) for fault in chosen))

    @contextlib.contextmanager
    def _recorded(self, fault: Fault) -> Iterator[None]:
        disturbance = Disturbance(fault.kind, "", timezone.now())
        with fault.inject(self.world) as host:
            if host is not None:
                disturbance.host = host
                self.world.disturbances.append(disturbance)
            yield
        disturbance.ended_at = timezone.now()

    # What goes on all the time

    def _pass(self, seconds: float) -> None:
        """Let time pass; meanwhile launch, tend to hosts as a person would, look and check."""
        end_s = time.monotonic() + seconds
        while True:
            patiently(self._launch)
            patiently(self._tend)
            self._sample()
            if time.monotonic() - self._checked_s > CHECK_EVERY_S:
                self._check(ended=False)
            if time.monotonic() > end_s:
                return
            time.sleep(min(TICK_S, max(0.0, end_s - time.monotonic())))

    def _launch(self) -> None:
        waiting = Run.objects.filter(state=Run.State.QUEUED).count()
        for sut, driver in itertools.islice(self._pairs, max(0, len(self.world.stage.actors) - waiting)):
            seconds = self.world.chance.choice((1, 2, 4, 8))
            self.world.stage.launch(sut, driver, warm_up_s=self.world.chance.choice((0, 1)), measure_s=seconds)

    def _tend(self) -> None:
        """Bring hosts back into service: restore now, restore what others changed as well, then by hand."""
        for actor in self.world.stage.actors.values():
            host = Host.objects.select_related("dirty_run__sut", "dirty_run__drivers").get(pk=actor.row.pk)
            if host.state == Host.State.UNREACHABLE and host.last_check.get("state") != "pending":
                request_check(self.world.stage.member, host)
            if host.state != Host.State.DIRTY:
                if actor.name in self._dirty:
                    self._dirty.discard(actor.name)
                    self._returns["restored by BenchHub"] += 1
                continue
            if actor.name not in self._dirty:
                self._dirty.add(actor.name)
                self._quarantined(host)
            with contextlib.suppress(Conflict):
                self._bring_back(actor, host)

    def _quarantined(self, host: Host) -> None:
        run = host.dirty_run
        kinds = {d.kind for d in self.world.disturbances if run and d.host == host.name and d.touches(run)}
        self._quarantines[" + ".join(sorted(kinds)) or "for no reason"] += 1
        if not kinds:
            self._add(f"{host.name} was quarantined though nothing was done to it: {host.state_reason}")

    def _bring_back(self, actor: Actor, host: Host) -> None:
        member, last = self.world.stage.member, host.last_restore
        if any(d.host == actor.name and d.ended_at is None for d in self.world.disturbances):
            return  # still broken
        if last.get("state") == "pending":
            return
        if last.get("state") in (None, "again"):
            request_restore(member, host)
        elif not last.get("force"):
            request_restore(member, host, force=True)
        else:
            self._put_back_by_hand(actor)
            clear_dirty(member, host, "put back by hand")
            self._dirty.discard(actor.name)
            self._returns["put back by hand"] += 1

    def _put_back_by_hand(self, actor: Actor) -> None:
        self.say(f"{self._time()} {actor.name} is put back by hand")
        (actor.root / "etc/held").unlink(missing_ok=True)
        (actor.root / "etc/app.conf").write_text("as it was\n")
        (actor.root / "etc/app.conf").chmod(0o640)
        with (actor.root / "changes").open("a") as changes:
            changes.write(f"{CLEARED}\n")
        shutil.rmtree(actor.host.home / ".benchhub/runs", ignore_errors=True)

    def _sample(self) -> None:
        now_s = time.monotonic()
        if now_s - self._sampled_s < SAMPLE_EVERY_S:
            return
        self._sampled_s = now_s
        for name in ("steady", "beat"):
            if (usage := _usage(self.world.stage.workers[name].pid, now_s - self._started_s)) is None:
                self._add(f"the process {name} ended by itself")
            else:
                self.report.usage.setdefault(name, []).append(usage)

    # Checks

    def _check(self, *, ended: bool) -> None:
        self._checked_s = time.monotonic()
        self.report.checks += 1
        stage = self.world.stage
        story = patiently(
            lambda: gather(
                stage.actors.values(),
                stage.folder,
                stage.environment["REDIS_URL"],
                stage.secrets(),
                reboots=self.world.reboots,
            )
        )
        for problem in [*check(story, ended=ended), *patiently(self._unexcused)]:
            self._add(problem)

    def _unexcused(self) -> list[str]:
        """Runs that failed though nothing happened that may fail a run: workers, broker, database and cuts may not."""
        may_fail = {fault.kind for fault in FAULTS if fault.fails}
        problems = []
        for run in Run.objects.filter(outcome__in=("failed", "lost")).select_related("sut", "drivers"):
            told = list(run.events.filter(kind="failed").values_list("payload", flat=True))
            early = bool(told) and told[0]["phase"] == "connect"
            excuses = [d for d in self.world.disturbances if d.touches(run) and (early or d.kind in may_fail)]
            if not excuses:
                problems.append(f"run #{run.number} is {run.outcome} without a reason to be: {run.failure}")
        return problems

    def _add(self, problem: str) -> None:
        if problem not in self._broken:
            self._broken[problem] = None
            self.say(f"{self._time()} BROKEN: {problem}")

    # The end

    def _come_to_rest(self) -> None:
        """No more faults and launches: every run ends, and every host comes back."""
        self.say(f"{self._time()} no more faults")
        end_s = time.monotonic() + END_S

        def at_rest() -> bool:
            self._tend()
            hosts = Host.objects.exclude(state=Host.State.READY, leased_by=None)
            return not (Run.objects.exclude(state=Run.State.FINISHED).exists() or hosts.exists())

        while not patiently(at_rest):
            self._sample()
            if time.monotonic() > end_s:
                self._add(f"not everything came to rest within {END_S:.0f} s")
                break
            time.sleep(TICK_S)

    def _conclude(self) -> None:
        self._check(ended=True)
        report, runs = self.report, Run.objects.all()
        report.minutes = round((time.monotonic() - self._started_s) / 60, 1)
        report.runs_by_outcome = dict(Counter(runs.values_list("outcome", flat=True)))
        report.runs_by_validity = dict(Counter(runs.values_list("validity", flat=True)))
        report.faults = dict(Counter(disturbance.kind for disturbance in self.world.disturbances))
        begun = runs.filter(attempts__gt=0)
        report.adoptions = (begun.aggregate(total=Sum("attempts"))["total"] or 0) - begun.count()
        report.most_attempts = max(runs.values_list("attempts", flat=True), default=0)
        report.restores_verified = runs.filter(restore=Run.Restore.VERIFIED).count()
        report.quarantines, report.returns = dict(self._quarantines), dict(self._returns)
        report.broken = list(self._broken)

    def _time(self) -> str:
        return f"{(time.monotonic() - self._started_s) / 60:6.2f} min"


def play(plan: Plan, folder: Path, say: Callable[[str], None]) -> Report:
    """Set everything up in `folder`, soak, and leave nothing running."""
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    user = get_user_model().objects.create_user("soak")
    member = Member.objects.create(team=Team.objects.create(slug="soak", name="Soak"), user=user, role=Role.ADMIN)
    places = Places(Path(settings.BENCHHUB_DATA_DIR))
    environment = surroundings(
        f"postgresql://benchhub@/benchhub?host={places.sockets}",
        settings.REDIS_URL,
        data_dir=folder,
        key_file=Path(settings.BENCHHUB_KEY_FILE),
    )
    stage = Stage(folder, member, {**environment, "BENCHHUB_PATIENCE_S": "180"})
    with contextlib.ExitStack() as running:
        lab = _lay_out(plan, stage, folder, running)
        world = World(stage, places, random.Random(plan.seed), lab)  # noqa: S311 - repeatable on purpose
        running.callback(world.close)
        stage.start_beat()
        for name in ("steady", *(f"w{number}" for number in range(1, plan.workers))):
            world.start_worker(name)
        return Soak(plan, world, say).run()


def _lay_out(plan: Plan, stage: Stage, folder: Path, running: contextlib.ExitStack) -> Lab | None:
    """Hosts in namespaces of their own where that is possible, else sshd on the loopback address."""
    names = tuple("abcdefgh"[: plan.hosts])
    if (why := why_not()) is None:
        lab = Lab(folder / "lab", hosts=names, of_this_process=True)
        running.callback(lambda: lab.down(purge=True))
        lab.up()
        for name in names:
            host = lab.host(name)
            stage.add_host(
                name,
                host,
                root=host.home.parent / "srv/stage",
                inside="/srv/stage",
                data_address=host.data_address,
                bind="0.0.0.0",  # noqa: S104 - in a network of its own
                python="/usr/bin/python3",
                sysctl={SYSCTL: "31"},
                read_sysctl=_sysctl_reader(lab, name),
            )
        return lab
    stage.member.team.refresh_from_db()
    for name in names:
        place = folder / f"host-{name}"
        place.mkdir()
        stage.add_host(name, running.enter_context(running_sshd(place)))
    print(f"No lab, so hosts on the loopback address without link faults and reboots: {why}")
    return None


def _sysctl_reader(lab: Lab, name: str) -> Callable[[str], str]:
    def read(key: str) -> str:
        return lab.exec(name, "cat", f"/proc/sys/{key.replace('.', '/')}").stdout.decode().strip()

    return read


def _usage(pid: int, at_s: float) -> Usage | None:
    """None when the process is not there any more."""
    process = Path(f"/proc/{pid}")
    try:
        pages = int((process / "statm").read_text().split()[1])
        return Usage(round(at_s, 1), pages * 4096, len(list((process / "fd").iterdir())))
    except OSError:
        return None
