"""The numbers of a stored verdict, read back. An older verdict lacks some of them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.verdict import not_worse
from experiments.models import StoredVerdict


class FamilyNumbers(BaseModel):
    """The correction for the number of comparisons: whether the comparison `stands` after it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    method: str
    size: int
    adjusted_p: float
    stands: bool


class VerdictNumbers(BaseModel):
    """What the report shows of a verdict; None = it was not said. `alpha` is of the interval that decided.

    `doubt`: why the figures are not taken for the servers', as a sentence.
    """

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
    higher_is_better: bool | None = None
    full_driver_runs: int = 0
    doubt: str = ""

    @property
    def enough(self) -> bool:
        """Whether there were repetitions enough for a verdict."""
        return min(self.n_a, self.n_b) >= MIN_FOR_VERDICT

    @property
    def not_worse(self) -> bool:
        """Whether the interval that decided leaves out a loss beyond the margin; False where that is not known.

        A load tool that was full in half of the runs may hide a loss, as it may hide any difference.
        """
        if self.full_driver_runs and 2 * self.full_driver_runs >= self.n_a + self.n_b:
            return False
        if self.margin_ratio is None or self.higher_is_better is None or not self.enough:
            return False
        return not_worse(self.deciding_pct, self.margin_ratio, self.higher_is_better)

    @classmethod
    def of(cls, verdict: StoredVerdict) -> VerdictNumbers:
        return cls.model_validate(verdict.numbers)
