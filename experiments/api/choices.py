"""States and other choices as the description tells them: the words that the tables may hold, as an `enum`.

They describe what goes out and what filters take. They check nothing: the tables and the filters do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

from pydantic import Field
from pydantic.fields import FieldInfo

from experiments.analysis.findings import Level
from experiments.analysis.verdict import Outcome
from experiments.models import (
    Alert,
    Delivery,
    DryRun,
    Experiment,
    Host,
    Occasion,
    PrometheusSource,
    Role,
    Run,
    Schedule,
    ShareLink,
    Webhook,
)
from experiments.models.inquiries import Inquiry


def _said(words: Sequence[str]) -> FieldInfo:
    described: FieldInfo = Field(json_schema_extra={"enum": list(words)})
    return described


RunState = Annotated[str, _said(Run.State.values)]
AnyRunState = Annotated[str, _said(("", *Run.State.values))]
"""For a filter: empty = any."""
RunOutcome = Annotated[str, _said(Run.Outcome.values)]
RunValidity = Annotated[str, _said(Run.Validity.values)]
RunRestore = Annotated[str, _said(Run.Restore.values)]
RunCause = Annotated[str, _said(Run.Cause.values)]
RunOrigin = Annotated[str, _said(Run.Origin.values)]
ExperimentState = Annotated[str, _said(Experiment.State.values)]
ExperimentOrder = Annotated[str, _said(Experiment.Order.values)]
StopRule = Annotated[str, _said(Experiment.StopRule.values)]
InquiryState = Annotated[str, _said(Inquiry.State.values)]
DryRunState = Annotated[str, _said(DryRun.State.values)]
HostState = Annotated[str, _said(Host.State.values)]
HostRoles = Annotated[str, _said(Host.Roles.values)]
AlertKind = Annotated[str, _said(Alert.Kind.values)]
AlertState = Annotated[str, _said(Alert.State.values)]
Triage = Annotated[str, _said(Alert.Triage.values)]
ScheduleState = Annotated[str, _said(Schedule.State.values)]
OccasionOutcome = Annotated[str, _said(Occasion.Outcome.values)]
ShareKind = Annotated[str, _said(ShareLink.Kind.values)]
DeliveryState = Annotated[str, _said(Delivery.State.values)]
PrometheusAuth = Annotated[str, _said(PrometheusSource.Auth.values)]
WebhookFormat = Annotated[str, _said(Webhook.Format.values)]
MemberRole = Annotated[str, _said(Role.values)]
FindingLevel = Annotated[str, _said(get_args(Level))]
PriorityName = Annotated[str, _said(("low", "normal", "high"))]
LogLevel = Annotated[str, _said(("info", "warning", "error"))]
MetricDirection = Annotated[str, _said(("higher", "lower"))]
ShareState = Annotated[str, _said(("live", "expired", "revoked"))]
VerdictOutcome = Annotated[str, _said(get_args(Outcome))]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})] | None
"""A date, or a date with a time in ISO 8601, which programs prefer; without an offset it is UTC."""
