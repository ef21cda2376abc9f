"""What the pages of docs/pages.md show beside seeded runs: one made-up team with something of everything.

Everything is made by the product's own use cases, as its pages make it; only the figures of runs are made up, because
the hosts are. Nothing is executed: no worker is told.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from agents.events import AnyEvent, LoadStarted, Logged, PhaseFinished, PhaseStarted
from agents.events import PhaseName as Phase
from bench.screenshot_answers import BASELINE, FINDINGS, PROFILED, RECIPE, SCALING, SHOP, SUT, SWEEP, WEEKLY, Answers
from bench.website import write_events
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.asking.prometheus.queries import ChannelQuery
from experiments.asking.prometheus.sources import Wanted as WantedSource
from experiments.asking.prometheus.sources import create_source
from experiments.asking.schedules.saving import Plan, create_schedule
from experiments.judging.alerts.saving_rules import WantedRule, create_rule
from experiments.judging.alerts.trends import rebuild
from experiments.judging.alerts.triage import triage
from experiments.keeping.retention.trash import trash_runs
from experiments.models import (
    Alert,
    AlertRule,
    Application,
    Bisection,
    BrokenRule,
    CapacitySearch,
    Delivery,
    DeliveryAttempt,
    Experiment,
    Host,
    Member,
    Occasion,
    PinnedBaseline,
    PrometheusSource,
    Recipe,
    Role,
    Run,
    Schedule,
    Series,
    ShareLink,
    Trend,
    Tuning,
    Webhook,
    Workload,
)
from experiments.registry.hosts.profiles import store_profile
from experiments.registry.hosts.reservations import reserve
from experiments.registry.notes.chart_notes import annotate
from experiments.registry.notes.notes import write_notes
from experiments.registry.runs.baselines import pin
from experiments.registry.teams.invitations import invite
from experiments.registry.teams.members import add_member
from experiments.registry.teams.tokens import issue
from experiments.telling.notifying.events import new_delivery
from experiments.telling.notifying.happenings import Happening
from experiments.telling.notifying.webhooks import Wanted, create_webhook
from experiments.telling.overview.pinned import pin_trend
from experiments.telling.run_list.saved_views import save_view
from experiments.telling.sharing.links import revoke_link, share
from experiments.telling.sharing.subjects import Subject

RULE = "p99 of main"
STORY: tuple[tuple[Phase, float], ...] = (
    ("connect", 0.8), ("facts", 2.5), ("snapshot", 1.9), ("tune", 4.2), ("start", 7.5), ("warm_up", 15.0),
    ("measure", 60.0), ("collect", 3.1), ("stop", 2.2), ("restore", 3.9), ("verify", 2.4),
)  # fmt: skip


def fill(member: Member) -> None:
    """Make everything, once."""
    if not CapacitySearch.objects.for_team(member.team).exists():
        with transaction.atomic():
            _Filling(member).everything()


def fill_with_few(member: Member) -> None:
    """Make one of each kind of thing that has a page, in seconds; the team has some runs."""
    with transaction.atomic():
        _Filling(member, few=True).one_of_each()


def arguments_of(member: Member) -> dict[str, Any]:
    """What stands for the words in the addresses; a mapping has another value for each page."""
    team = member.team

    def only(rows: Any, **wanted: Any) -> int | None:
        found: int | None = rows.for_team(team).filter(**wanted).order_by("-id").values_list("pk", flat=True).first()
        return found

    run = PinnedBaseline.objects.for_team(team).get(name=BASELINE).run
    if run.last_seq == 0:
        write_events(run, iter(_story(run)))
    same = Run.objects.for_team(team).counted().filter(fingerprint=run.fingerprint).order_by("-number")[:2]
    series = Series.objects.get(fingerprint=run.fingerprint, team=team)
    host, recipe = only(Host.objects, name=SUT), only(Recipe.objects, name=RECIPE)
    scaling = only(Experiment.objects, name=SCALING)
    compared = Experiment.objects.for_team(team).get(name=PROFILED)
    profiled = compared.runs.filter(variant__is_baseline=False).latest("number")
    of_system = Run.objects.for_team(team).filter(application__name=SHOP).order_by("-number")
    system = sorted(of_system.values_list("number", flat=True)[:2])
    link = share(member, Subject(ShareLink.Kind.RUN, runs=(run.number,)))
    return {
        "team_slug": team.slug,
        "number": defaultdict(lambda: run.number, {"run-system": system[-1], "run_profile": profiled.number}),
        "shared_run": run.number,
        "experiment_id": {
            "experiment": only(Experiment.objects, name=SWEEP),
            "experiment_report": scaling,
            "scaling": scaling,
            "gate": scaling,
        },
        "search_id": only(CapacitySearch.objects, state=CapacitySearch.State.FINISHED),
        "bisection_id": only(Bisection.objects, state=Bisection.State.FINISHED),
        "tuning_id": only(Tuning.objects, outcome=Tuning.Outcome.BETTER),
        "schedule_id": only(Schedule.objects, name=WEEKLY),
        "rule_id": only(AlertRule.objects, name=RULE),
        "source_id": only(PrometheusSource.objects, name="Production"),
        "webhook_id": only(Webhook.objects, name="Dashboard"),
        "token": link.token,
        "text": invite(member, Role.VIEWER).link.rstrip("/").rpartition("/")[2],
        "kind": "recipes",
        "name": "tomcat-baseline",
        "topic": "validity",
        "pk": {
            **dict.fromkeys(("host", "edit_host", "profile_diff"), host),
            **dict.fromkeys(("recipe", "edit_document", "document_diff"), recipe),
            "alert": only(Alert.objects, trend__metric="throughput_rps"),
            "application": only(Application.objects),
            "workload": only(Workload.objects),
        },
        "pair": ",".join(str(one.number) for one in same),
        "series": series.pk,
        "profile": profiled.profiles.latest("pk").name,
        "profiled": compared.pk,
        "system_pair": ",".join(map(str, system)),
    }


def _story(run: Run) -> list[AnyEvent]:
    """The phases of a run as the timeline and the log show them."""
    events: list[AnyEvent] = []
    at_unix_s = run.finished_at.timestamp() - sum(took for _, took in STORY) if run.finished_at else 0.0
    for phase, took_s in STORY:
        events += [PhaseStarted(phase, at_unix_s), Logged("runner", (f"{phase.replace('_', ' ').capitalize()}.",))]
        if phase in ("warm_up", "measure"):
            events.append(LoadStarted(int(phase == "measure"), phase == "measure", int(took_s), at_unix_s))
        events.append(PhaseFinished(phase, took_s))
        at_unix_s += took_s
    return events


class _Filling(Answers):
    """One team; every method makes one subject of the pages."""

    def everything(self) -> None:
        self.people()
        self.documents()
        self.capacity()
        self.scaling()
        self.sweep()
        self.profiled()
        self.system()
        self.bisection()
        self.tuning()
        self.history()
        self.messages()
        self.links()
        self.hosts()
        self.clock()
        self.open_runs()

    def one_of_each(self) -> None:
        self.people()
        self.documents()
        self.capacity()
        self.bisection()
        self.tuning()
        self.scaling()
        self.profiled()
        self.system()
        self.messages()
        self.hosts()
        self.clock()
        self.open_runs()

    def people(self) -> None:
        for name, role in (("ada", Role.EDITOR), ("grace", Role.LAUNCHER), ("linus", Role.VIEWER)):
            add_member(self.member, name, role)
        invite(self.member, Role.EDITOR)
        invite(self.member, Role.VIEWER)
        issue(self.member, name="Nightly pipeline", scopes=["read", "launch"], days=90)
        issue(self.member, name="Dashboard", scopes=["read"], days=365)
        for name, query, shared in (
            ("Releases, slowest first", "tag=release&sort=throughput_rps", True),
            ("Suspect and invalid", "validity__in=suspect,invalid", True),
            ("p99 above 20 ms on main", "branch=main&p99__gte=20", False),
        ):
            save_view(self.member, name, query, shared=shared)

    def history(self) -> None:
        """Change points that somebody has looked at, notes, a baseline, pinned trends."""
        for series in Series.objects.for_team(self.team):
            rebuild(series)
        states = ("acknowledged", "expected", "infra")
        for state, alert in zip(states, Alert.objects.for_team(self.team).order_by("-id"), strict=False):
            triage(self.member, alert, state=state, owner=self.member, note="Came with the new kernel.")
        usable = (
            Run.objects.for_team(self.team)
            .counted()
            .filter(experiment=None)
            .exclude(fingerprint="")
            .order_by("-number")
        )
        newest = self.newest = usable[0]
        newest.findings = FINDINGS
        newest.save(update_fields=["findings"])
        pin(self.member, newest, BASELINE, for_series=True)
        pin(self.member, usable[40], "before the new kernel")
        write_notes(
            self.member, newest, "First run with **kernel 6.17**.\n\n- p99 as before\n- see `sysctl` in the diff"
        )
        series = Series.objects.for_team(self.team).get(fingerprint=newest.fingerprint)
        annotate(self.member, series, timezone.now() - timedelta(days=200), "Firmware 2.4 on all SUTs")
        annotate(self.member, series, timezone.now() - timedelta(days=60), "Switch replaced")
        trends = Trend.objects.filter(series__team=self.team, metric="throughput_rps", length__gt=8).order_by("-length")
        for trend in trends[:3]:
            pin_trend(self.member, trend)
        write_experiment = Experiment.objects.for_team(self.team).order_by("id").first()
        if write_experiment is not None:
            write_notes(self.member, write_experiment, "Keep: shown to the platform team.")
        trash_runs(self.member, [run.number for run in usable.reverse()[:5]])

    def messages(self) -> None:
        """A webhook whose receiver was away for a while, and a rule that a run broke."""
        rule = create_rule(self.member, WantedRule(RULE, "figure", "latency_p99_ms", "above", 5.0))
        create_rule(self.member, WantedRule("A candidate lost", "verdict", labels={"branch": "main"}))
        last = Run.objects.for_team(self.team).counted().order_by("-number")[0]
        said = f"Run #{last.number}: Latency, p99 is 6.1 ms, above 5 ms."
        BrokenRule.objects.create(rule=rule, run=last, sentence=said)
        wanted = Wanted("Team chat", "https://chat.example/hooks/bench", ["verdict.reached", "alert.raised"], "slack")
        create_webhook(self.member, wanted)
        webhook, _ = create_webhook(
            self.member, Wanted("Dashboard", "https://dashboard.example/in", ["run.finished", "alert.raised"])
        )
        load = ChannelQuery("load1", 'node_load1{instance="{host}:9100"}', "tasks")
        received = 'rate(node_network_receive_bytes_total{instance="{host}:9100"}[1m])'
        asked = [load, ChannelQuery("received", received, "bytes_per_s", "driver", 15, "device")]
        create_source(self.member, WantedSource("Production", "https://prometheus.example", asked))
        given_up = Delivery.State.GIVEN_UP
        for number, (state, statuses) in enumerate(
            ((Delivery.State.DELIVERED, (200,)), (given_up, (503,) * 4), (Delivery.State.DELIVERED, (503, 200)))
        ):
            run = Run.objects.for_team(self.team).counted().order_by("-number")[number]
            happening = Happening("run.finished", f"Run #{run.number} succeeded", "Valid.", f"runs/{run.number}/")
            made = new_delivery(webhook, happening, self.team)
            for status in statuses:
                answer = "ok" if status == 200 else "upstream is down"
                DeliveryAttempt.objects.create(delivery=made, status=status, duration_ms=41.0, response=answer)
            made.state, made.tries, made.next_at = state, len(statuses), None
            made.save()

    def links(self) -> None:
        run = self.newest
        experiment = Experiment.objects.for_team(self.team).get(name=SCALING)
        series = Series.objects.for_team(self.team).get(fingerprint=run.fingerprint)
        share(self.member, Subject(ShareLink.Kind.RUN, runs=(run.number,)), days=30)
        share(self.member, Subject(ShareLink.Kind.EXPERIMENT, experiment_id=experiment.pk), days=None)
        over = share(self.member, Subject(ShareLink.Kind.TREND, series_id=series.pk), days=7)
        revoke_link(self.member, over.link.pk)

    def hosts(self) -> None:
        """A host that is reserved, one in doubt, and one with an earlier hardware profile."""
        now = timezone.now()
        other = Host.objects.for_team(self.team).get(name="seed-sut-arm64")
        reserve(self.member, [other], until=now + timedelta(hours=3), reason="Firmware update")
        facts = dict(self.sut.profile.facts) if self.sut.profile else {}
        earlier = facts | {"memory.total_bytes": str(64 << 30), "kernel.release": "6.12.38-1"}
        store_profile(self.sut, "earlier".ljust(64, "0"), earlier)
        store_profile(self.sut, "present".ljust(64, "0"), facts | {"kernel.release": "6.17.4-2"})

    def clock(self) -> None:
        """Two schedules and what became of their times."""
        experiment = Experiment.objects.for_team(self.team).get(name=SCALING)
        run = Run.objects.for_team(self.team).counted().filter(recipe=self.tuned).order_by("-number").first()
        if run is not None:
            create_schedule(self.member, Plan("Smoke run", "0 */6 * * *", run=run))
        weekly = create_schedule(
            self.member,
            Plan(WEEKLY, "30 2 * * 1", "Europe/Berlin", experiment=experiment, skips_unchanged=True),
        )
        self._occasions(weekly, experiment)

    def open_runs(self) -> None:
        """One run on the hosts, the rest in the queue."""
        choice = Choice(self.application, self.tuned, self.workload, self.sut, (self.driver,))
        runs = [
            launch_run(self.member, choice, labels={"branch": "main", "commit": commit}, priority=priority)
            for commit, priority in (("9f1c2e7d04", 0), ("4b77d0a1c2", 0), ("d41e88f3aa", Run.Priority.HIGH))
        ]
        live, now = runs[0], timezone.now()
        live.state, live.started_at, live.measured_at = Run.State.MEASURING, now, now + timedelta(seconds=25)
        live.lease_until = now + timedelta(hours=1)
        live.save()
        Host.objects.filter(pk__in=[self.sut.pk, self.driver.pk]).update(leased_by=live)

    def _occasions(self, schedule: Schedule, experiment: Experiment) -> None:
        for weeks, outcome, sentence in (
            (3, Occasion.Outcome.LAUNCHED, ""),
            (2, Occasion.Outcome.UNCHANGED, "Nothing changed since the last launch: same versions, same hosts."),
            (1, Occasion.Outcome.LAUNCHED, ""),
        ):
            Occasion.objects.create(
                schedule=schedule,
                due_at=timezone.now() - timedelta(weeks=weeks),
                outcome=outcome,
                sentence=sentence,
                experiment=experiment if outcome == Occasion.Outcome.LAUNCHED else None,
            )
