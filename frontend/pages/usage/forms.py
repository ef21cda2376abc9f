"""How long a team keeps its runs, and what it may use."""

from __future__ import annotations

from typing import Any

from django import forms

from experiments.keeping.retention.policy import MAX_DAYS, MIN_DAYS
from experiments.models import Team
from experiments.registry.teams.quotas import QUOTAS

GIB = 2**30


class RetentionForm(forms.Form):
    """After how many days runs that nothing exempts go to the trash."""

    days = forms.IntegerField(
        min_value=MIN_DAYS,
        max_value=MAX_DAYS,
        label="Keep runs for (days)",
        help_text="A run may still be restored for 30 days after that.",
    )


class QuotaForm(forms.Form):
    """What the team may use; the size of files in GiB."""

    def __init__(self, team: Team, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for quota in QUOTAS:
            now = getattr(team, quota.field)
            if quota.unit == "bytes":
                label, most, now = f"{_begun(quota.label)}, GiB", quota.most // GIB, round(now / GIB)
            else:
                label, most = _begun(quota.label), quota.most
            self.fields[quota.field] = forms.IntegerField(min_value=0, max_value=most, initial=now, label=label)

    def values(self) -> dict[str, int]:
        """By the field of the team, in its unit."""
        return {quota.field: self.cleaned_data[quota.field] * (GIB if quota.unit == "bytes" else 1) for quota in QUOTAS}


def _begun(label: str) -> str:
    return f"{label[0].upper()}{label[1:]}"
