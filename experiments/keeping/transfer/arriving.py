"""What a row must become in the installation where it arrives: nothing starts by itself, no host is taken over."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from django.db.models import Model

from agents.remote.address import new_key_pair
from experiments.models import (
    Bisection,
    CapacitySearch,
    DriverSet,
    Experiment,
    Host,
    Run,
    Schedule,
    Trend,
    Tuning,
    Variant,
)
from experiments.registry.hosts.keys import seal

Row = dict[str, Any]
Ids = Mapping[type[Model], Mapping[int, int]]

MOVED = "It was under way when its team was exported."
NEW_KEY = "Imported: put its new public key on the host, test the connection, then take it into service."


def arrive(model: type[Model], row: Row, pk: int | None, ids: Ids) -> None:
    """Change the row, whose references are already those of this installation; `pk` is its new id where it has one."""
    if model in _RULES:
        _RULES[model](row, pk, ids)


def _host(row: Row, pk: int | None, _ids: Ids) -> None:
    """A host gets a new key pair, as private keys do not travel, and waits for a person."""
    private_key, row["public_key"] = new_key_pair(f"benchhub {row['name']}")
    row["private_key"] = seal(private_key, row=f"host:{pk}")
    row["state"], row["state_reason"] = Host.State.DRAINED, NEW_KEY


def _experiment(row: Row, _pk: int | None, _ids: Ids) -> None:
    if row["state"] == Experiment.State.RUNNING:
        row["state"], row["state_reason"] = Experiment.State.PAUSED, MOVED


def _run(row: Row, _pk: int | None, _ids: Ids) -> None:
    """ValueError for one that is not over: it would be waited for, or start on somebody's host."""
    if row["state"] != Run.State.FINISHED:
        raise ValueError(f"a run that is {row['state']}")


def _search(row: Row, _pk: int | None, _ids: Ids) -> None:
    if row["state"] == "running":
        row["state"], row["sentence"] = "stopped", MOVED


def _schedule(row: Row, _pk: int | None, _ids: Ids) -> None:
    if row["state"] == Schedule.State.ACTIVE:
        row["state"], row["state_reason"] = Schedule.State.PAUSED, "Imported: resume it when its hosts are in service."
    row["due_at"] = None


def _trend(row: Row, _pk: int | None, ids: Ids) -> None:
    """Its runs are one point by the ids of their variants; the boots that single runs share stay as they are."""
    points = np.frombuffer(b64decode(row["packed"]), Trend.POINT).copy()
    points["key"] = [ids[Variant].get(key, 0) if key > 0 else key for key in points["key"].tolist()]
    row["packed"] = b64encode(points.tobytes()).decode()
    row["last_experiment_id"] = ids[Experiment].get(row["last_experiment_id"])


def _driver_set(row: Row, _pk: int | None, ids: Ids) -> None:
    """Its key names hosts by their ids, which keep their order."""
    drivers, semicolon, members = str(row["key"]).partition(";")
    pairs = (one.partition("=") for one in members.split(",") if one)
    row["key"] = ",".join(str(ids[Host][int(one)]) for one in drivers.split(","))
    row["key"] += semicolon + ",".join(f"{role}={ids[Host][int(pk)]}" for role, _, pk in pairs)


_RULES: Mapping[type[Model], Callable[[Row, int | None, Ids], None]] = {
    Host: _host,
    Experiment: _experiment,
    Run: _run,
    CapacitySearch: _search,
    Bisection: _search,
    Tuning: _search,
    Schedule: _schedule,
    Trend: _trend,
    DriverSet: _driver_set,
}
