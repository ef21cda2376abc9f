"""The numbers of a stored verdict, read back. An older verdict lacks some of them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from experiments.models import StoredVerdict


class FamilyNumbers(BaseModel):
    """The correction for the number of comparisons: whether the comparison `stands` after it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    method: str
    size: int
    adjusted_p: float
    stands: bool


class VerdictNumbers(BaseModel):
    """What the report shows of a verdict; None = it was not said. `alpha` is of the interval that decided."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    estimate_pct: float | None = None
    ci95_pct: tuple[float, float] | None = None
    deciding_pct: tuple[float, float] | None = None
    alpha: float | None = None
    n_a: int = 0
    n_b: int = 0
    p_value: float | None = None
    cov_pct: float | None = None
    decides: bool | None = None
    looks: int | None = None
    family: FamilyNumbers | None = None
    outlier_sensitive: bool = False
    margin_ratio: float | None = None

    @classmethod
    def of(cls, verdict: StoredVerdict) -> VerdictNumbers:
        return cls.model_validate(verdict.numbers)
