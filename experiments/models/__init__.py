"""The record of what ran, for whom, on what, and what it showed."""

from experiments.models.documents import Application, Document, Recipe, Workload
from experiments.models.experiments import Experiment, StoredVerdict, Variant
from experiments.models.history import Alert, Trend
from experiments.models.hosts import HardwareProfile, Host, HostGrant, HostProfile, Reservation
from experiments.models.operations import Canary, Tally, Worker
from experiments.models.results import Artifact, LatencySpectrum, Metric, SampleSeries, Series
from experiments.models.runs import ConfigSnapshot, DryRun, Run, RunEvent
from experiments.models.searches import CapacitySearch, SearchTrial
from experiments.models.teams import AuditEntry, IdempotencyRecord, Member, Role, Team, Token
from experiments.models.timers import TimerTable

__all__ = [
    "Alert",
    "Application",
    "Artifact",
    "AuditEntry",
    "Canary",
    "CapacitySearch",
    "ConfigSnapshot",
    "Document",
    "DryRun",
    "Experiment",
    "HardwareProfile",
    "Host",
    "HostGrant",
    "HostProfile",
    "IdempotencyRecord",
    "LatencySpectrum",
    "Member",
    "Metric",
    "Recipe",
    "Reservation",
    "Role",
    "Run",
    "RunEvent",
    "SampleSeries",
    "SearchTrial",
    "Series",
    "StoredVerdict",
    "Tally",
    "Team",
    "TimerTable",
    "Token",
    "Trend",
    "Variant",
    "Worker",
    "Workload",
]
