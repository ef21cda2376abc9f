"""Signed-in browsers and runs as the recorder leaves them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.base.setting_outcome import SettingOutcome
from agents.events import (
    AnyEvent,
    LoadReported,
    LoadStarted,
    Logged,
    PhaseFinished,
    PhaseStarted,
    Restored,
    Samples,
    StepApplied,
    StepIntended,
    StepReverted,
    to_json,
)
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import ConfigSnapshot, HardwareProfile, Member, Run, RunEvent
from tests.experiments.conftest import admin, make_member, other_admin, stock, team  # noqa: F401 - fixtures

FINGERPRINT = "f" * 64
EVENTS: tuple[AnyEvent, ...] = (
    PhaseStarted("tune"),
    StepIntended(0, "sysctl: 2 keys", {"net.core.somaxconn": "4096", "net.ipv4.tcp_tw_recycle": None}, ("sysctl ...",)),
    StepApplied(
        0,
        (
            SettingOutcome("net.core.somaxconn", "65535", "4096", "65535", "applied"),
            SettingOutcome("net.ipv4.tcp_tw_recycle", "1", None, None, "unsupported"),
        ),
        {},
    ),
    PhaseFinished("tune", 1.5),
    PhaseStarted("measure"),
    LoadStarted(0, True, 10, 1000.0),
    Samples("sut", 1001.0, {"cpu_set.busy_ratio": ("ratio", 0.9)}),
    Logged("server", ("<script>alert(1)</script>",), "warning"),
    LoadReported(0, True, 0, "secret tool output", "00", {"latency_p50_ms": 2.0, "latency_p99_ms": 9.0}),
    PhaseFinished("measure", 10.0),
    StepReverted(0),
    Restored({}),
)

MakeRun = Callable[..., Run]


def write(run: Run, *events: AnyEvent) -> None:
    """Append events as the recorder does."""
    for event in events:
        run.last_seq += 1
        RunEvent.objects.create(
            run=run, seq=run.last_seq, kind=event.kind, payload=to_json(event), fence=1, at=timezone.now()
        )
    run.save(update_fields=["last_seq"])


@pytest.fixture
def make_run(admin: Member, stock: dict[str, Any]) -> MakeRun:  # noqa: F811 - the fixtures
    """A queued run; with `throughput_rps` a finished, valid one."""

    def make(*, throughput_rps: float | None = None, events: tuple[AnyEvent, ...] = EVENTS, **fields: Any) -> Run:
        run = launch_run(admin, Choice(**stock))
        if throughput_rps is not None:
            fields = _finished(run, throughput_rps) | fields
        for name, value in fields.items():
            setattr(run, name, value)
        run.save()
        write(run, *events)
        return run

    return make


def _finished(run: Run, throughput_rps: float) -> dict[str, Any]:
    profile, _ = HardwareProfile.objects.get_or_create(team=run.team, digest="p" * 64, defaults={"facts": {"cpu": "x"}})
    values = {"sysctl.net.core.somaxconn": str(run.number)}
    config = ConfigSnapshot.objects.create(team=run.team, digest=f"c{run.number}", values=values)
    return {
        "state": "finished",
        "outcome": "succeeded",
        "validity": "valid",
        "restore": "verified",
        "fingerprint": FINGERPRINT,
        "sut_profile": profile,
        "config": config,
        "finished_at": timezone.now() - timedelta(days=1),
        "metrics": {"throughput_rps": throughput_rps, "latency_p99_ms": 9.0, "errors_total": 0.0},
        "throughput_rps": throughput_rps,
        "findings": [
            {"check": "errors", "level": "ok", "sentence": "No request failed.", "evidence": {}, "source": "docs"}
        ],
    }


@pytest.fixture
def browser_of() -> Callable[[Member], Client]:
    def sign_in(member: Member) -> Client:
        client = Client()
        client.force_login(member.user)
        return client

    return sign_in


@pytest.fixture
def browser(admin: Member, browser_of: Callable[[Member], Client]) -> Client:  # noqa: F811 - the fixture
    return browser_of(admin)
