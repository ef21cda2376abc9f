"""The record of what ran, for whom, on what, and what it showed."""

from experiments.models.alert_rules import AlertRule, BrokenRule
from experiments.models.annotations import Annotation
from experiments.models.baselines import PinnedBaseline
from experiments.models.bisecting import Bisection, BisectionStep
from experiments.models.canaries import HostCanary
from experiments.models.documents import Application, Document, Recipe, Workload
from experiments.models.experiments import Experiment, StoredVerdict, Variant
from experiments.models.history import Alert, HistoryLimits, Trend
from experiments.models.hosts import DriverSet, HardwareProfile, Host, HostGrant, HostProfile, Machine, Reservation
from experiments.models.installation import Installation
from experiments.models.invitations import Invitation
from experiments.models.notifying import Delivery, DeliveryAttempt, Webhook
from experiments.models.operations import Canary, Tally, Worker
from experiments.models.profiles import RunProfile
from experiments.models.prometheus import PrometheusReading, PrometheusSource
from experiments.models.results import (
    ARTIFACT_BYTES,
    Artifact,
    LatencySpectrum,
    Metric,
    SampleSeries,
    Series,
    UnusedFile,
)
from experiments.models.runs import ConfigSnapshot, DryRun, Run, RunEvent
from experiments.models.saved_views import PinnedTrend, SavedView
from experiments.models.scheduling import Occasion, Schedule
from experiments.models.searches import CapacitySearch, SearchTrial
from experiments.models.sharing import ShareLink
from experiments.models.sites import CENTRAL, Site
from experiments.models.teams import AuditEntry, IdempotencyRecord, Member, Role, Team, Token
from experiments.models.timers import TimerTable
from experiments.models.traces import RunTrace
from experiments.models.tunings import Tuning, TuningSut, TuningTrial

__all__ = [
    "ARTIFACT_BYTES",
    "CENTRAL",
    "Alert",
    "AlertRule",
    "Annotation",
    "Application",
    "Artifact",
    "AuditEntry",
    "Bisection",
    "BisectionStep",
    "BrokenRule",
    "Canary",
    "CapacitySearch",
    "ConfigSnapshot",
    "Delivery",
    "DeliveryAttempt",
    "Document",
    "DriverSet",
    "DryRun",
    "Experiment",
    "HardwareProfile",
    "HistoryLimits",
    "Host",
    "HostCanary",
    "HostGrant",
    "HostProfile",
    "IdempotencyRecord",
    "Installation",
    "Invitation",
    "LatencySpectrum",
    "Machine",
    "Member",
    "Metric",
    "Occasion",
    "PinnedBaseline",
    "PinnedTrend",
    "PrometheusReading",
    "PrometheusSource",
    "Recipe",
    "Reservation",
    "Role",
    "Run",
    "RunEvent",
    "RunProfile",
    "RunTrace",
    "SampleSeries",
    "SavedView",
    "Schedule",
    "SearchTrial",
    "Series",
    "ShareLink",
    "Site",
    "StoredVerdict",
    "Tally",
    "Team",
    "TimerTable",
    "Token",
    "Trend",
    "Tuning",
    "TuningSut",
    "TuningTrial",
    "UnusedFile",
    "Variant",
    "Webhook",
    "Worker",
    "Workload",
]
