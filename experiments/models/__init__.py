"""The record of what ran, for whom, on what, and what it showed."""

from experiments.models.documents import Application, Document, Recipe, Workload
from experiments.models.experiments import Experiment, StoredVerdict, Variant
from experiments.models.hosts import HardwareProfile, Host, HostGrant, HostProfile, Reservation
from experiments.models.operations import Canary, Tally, Worker
from experiments.models.results import Artifact, Metric, SampleSeries, Series
from experiments.models.runs import ConfigSnapshot, DryRun, Run, RunEvent
from experiments.models.teams import AuditEntry, IdempotencyRecord, Member, Role, Team, Token

__all__ = [
    "Application",
    "Artifact",
    "AuditEntry",
    "Canary",
    "ConfigSnapshot",
    "Document",
    "DryRun",
    "Experiment",
    "HardwareProfile",
    "Host",
    "HostGrant",
    "HostProfile",
    "IdempotencyRecord",
    "Member",
    "Metric",
    "Recipe",
    "Reservation",
    "Role",
    "Run",
    "RunEvent",
    "SampleSeries",
    "Series",
    "StoredVerdict",
    "Tally",
    "Team",
    "Token",
    "Variant",
    "Worker",
    "Workload",
]
