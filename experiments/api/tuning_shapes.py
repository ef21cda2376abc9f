"""What the operations of tuning searches take and give."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Discriminator, Field, Tag

from experiments.analysis.tuning.effects import Effect
from experiments.api.setups import InquiryRow, SetupIn, inquiry_fields
from experiments.api.shapes import Body, Named, Parameters, Whole, tuning_url
from experiments.asking.tunings.answer import Outcome, TuningAnswer, markdown
from experiments.asking.tunings.plan import MOST_LIMITS, MOST_RUNS
from experiments.asking.tunings.space import MOST_PARAMETERS, MOST_STARTS, Range, SpaceDocument, Start, Text
from experiments.asking.tunings.suts import MOST_FURTHER
from experiments.models import Tuning

SPACE_SAID = (
    "Parameters with their bounds; or the same as YAML text, which may have the fields of the search as well: "
    "`metric`, `limits`, `further_suts` and all others but `name`, `labels`, `priority` and those of a run"
)


HostName = Annotated[str, Field(min_length=1, max_length=120)]


class LimitIn(Body):
    metric: str = Field(min_length=1, max_length=60)
    at_most: float | None = Field(None, description="0 for a count that must stay 0, such as errors_total")
    at_least: float | None = None


class SpaceIn(Body):
    """What may be tried; the recipe's own bounds where none are given."""

    parameters: list[Range] = Field(min_length=1, max_length=MOST_PARAMETERS)
    forbidden: list[Text] = Field(default=[], max_length=100, description="Such as `workers > 4 and sendfile = off`")
    starts: list[Start] = Field(default=[], max_length=MOST_STARTS, description="Configurations to be tried first")


def _form(space: Any) -> str:
    return "by-yaml" if isinstance(space, str) else "by-fields"


AnySpace = Annotated[Annotated[SpaceIn, Tag("by-fields")] | Annotated[str, Tag("by-yaml")], Discriminator(_form)]


class TuningIn(SetupIn):
    """The recipe's parameters that are not searched stay as `parameters` says."""

    name: str = Field(min_length=1, max_length=120)
    space: AnySpace = Field(description=SPACE_SAID)
    metric: str = Field("throughput_rps", max_length=60)
    limits: list[LimitIn] = Field(default=[], max_length=MOST_LIMITS, description="What a recommendation must keep")
    margin_ratio: float = Field(0.03, gt=0, lt=1, description="The smallest gain that is worth a change")
    budget_runs: Whole = Field(60, ge=1, le=MOST_RUNS)
    budget_hours: float | None = Field(None, gt=0)
    reduces: bool = Field(False, description="Look for the smallest recipe that keeps the gain, too")
    further_suts: list[HostName] = Field(
        default=[], max_length=MOST_FURTHER, description="Servers equal to the SUT, among which the trials are divided"
    )
    confirm_sut: HostName | None = Field(None, description="One more equal server, on which alone it is confirmed")
    confirm_after_hours: float | None = Field(None, gt=0, description="Pause so long before the confirmation")
    warm: bool = Field(True, description="Try first what earlier searches and experiments with this recipe found")


class BudgetIn(Body):
    runs: Whole = Field(0, ge=0, le=MOST_RUNS)
    hours: float = Field(0.0, ge=0)


class RegionIn(Body):
    mixture: Text = Field(description="Such as `workers > 4 and sendfile = off`; `forbidden` of the space says how")


class LimitedOut(BaseModel):
    metric: str
    value: float = Field(description="Of one run; of a selected configuration it is optimistic, as its figure is")
    held: bool


class TuningTrialOut(BaseModel):
    position: int
    purpose: str = Field(description="control, explore, repeat, confirm or revert (docs/tuning.md)")
    config: Parameters
    sut: str = Field(description="The server on which it runs")
    why: str
    block: int
    result: str = Field(description="ok, invalid, crashed or refused; empty while it is not over")
    reason: str
    figure: float | None = Field(description="Of a trial that was measured; selected ones are optimistic")
    limited: list[LimitedOut] = Field(description="Each limited metric of a trial that was measured")
    run: int | None = Field(description="null while it is planned")
    run_url: str | None


class BestOut(BaseModel):
    """What looks best so far: selected among many, so optimistic, and never a claim."""

    config: Parameters
    gain: float = Field(description="As gain_ratio, a ratio of speeds")
    low: float
    high: float
    within: float = Field(description="The probability that every limit holds")
    runs: int


class RevertedOut(BaseModel):
    parameter: str
    may_go: bool = Field(description="A loss that matters is left out, no run failed and each limit held as often")
    sentence: str
    estimate_pct: float | None
    interval_pct: list[float] | None


class TogetherOut(BaseModel):
    """All parameters that may go alone, gone together, beside the winner."""

    sentence: str
    estimate_pct: float | None
    interval_pct: list[float] | None


class SmallestOut(BaseModel):
    config: Parameters
    dropped: list[str]
    each: list[RevertedOut]
    together: TogetherOut | None = Field(None, description="null where fewer than two may go")


class TuningRow(InquiryRow):
    metric: str
    margin_ratio: float
    budget_runs: int
    budget_hours: float | None
    paused: bool
    outcome: str = Field(description="better, nothing_better or budget_too_small; empty without an answer")
    winner: Parameters | None = Field(description="Confirmed to be better than the default")
    gain_ratio: float | None = Field(description="Of speeds: 3 where a latency is a quarter of the default's")
    low_ratio: float | None = Field(description="Of the 95 % interval of fresh pairs of runs")
    high_ratio: float | None
    more_runs: int | None = Field(description="About so many more would do, when the budget was too small")

    @classmethod
    def of(cls, tuning: Tuning, team: str) -> TuningRow:
        same = ("metric", "margin_ratio", "budget_runs", "budget_hours", "paused", "outcome", "winner", "gain_ratio")
        return cls(
            url=tuning_url(team, tuning.pk),
            **{name: getattr(tuning, name) for name in (*same, "low_ratio", "high_ratio", "more_runs")},
            **inquiry_fields(tuning),
        )


class TuningOut(TuningRow):
    space: SpaceDocument
    default: Parameters
    further_suts: list[str] = Field(description="Servers equal to the SUT, among which the trials are divided")
    confirm_sut: str | None
    confirm_after_hours: float | None
    more_hours: float | None = Field(None, description="Beyond its hours, for `more_runs`; 0 where these suffice")
    confirms_at: datetime | None = Field(description="When the pause before the confirmation ends, once it has begun")
    limits: list[LimitIn]
    best: BestOut | None
    smallest: SmallestOut | None
    smaller_recipe: Named | None
    runs: int
    left_runs: int = Field(description="At most, within the hours; those of the smallest recipe that is asked for, too")
    used_s: float
    left_s: float | None
    trials: list[TuningTrialOut]


class ParameterEffectOut(BaseModel):
    """One parameter alone, against its default's value; the largest spread stands first."""

    parameter: str
    values: list[bool | int | float | str]
    change_pct: list[float] = Field(description="Of the metric, one for each value")
    low_pct: list[float] = Field(description="With high_pct 95 % of what the model believes")
    high_pct: list[float]
    spread_pct: float = Field(description="From the lowest to the highest change: the rank of the parameter")
    is_clear: bool = Field(description="At some value the 95 % leave out that nothing changes")
    configs: int = Field(description="How many measured configurations it is the mean of")

    @classmethod
    def of(cls, one: Effect) -> ParameterEffectOut:
        same = ("change_pct", "low_pct", "high_pct", "values")
        is_clear = any(low > 0 or high < 0 for low, high in zip(one.low_pct, one.high_pct, strict=True))
        return cls(
            parameter=one.name,
            **{name: list(getattr(one, name)) for name in same},
            spread_pct=one.spread_pct,
            is_clear=is_clear,
            configs=one.configs,
        )


class CoordinatesOut(BaseModel):
    """A trial as a line over the parameters."""

    position: int
    run: int | None
    values: dict[str, bool | int | float | str | None] = Field(description="null: the parameter did not count")
    result: str
    against_pct: float | None = Field(description="Against the mean of the default's figures; selected, optimistic")
    is_default: bool
    is_left_out: bool = Field(description="Its region was left out later on")


class EffectsOut(BaseModel):
    """What a model of the trials believes: an opinion of selected trials, and no verdict."""

    fewest_configs: int = Field(description="Below so many measured configurations `effects` is empty")
    effects: list[ParameterEffectOut]
    coordinates: list[CoordinatesOut]


class TuningAnswerOut(BaseModel):
    outcome: Outcome = Field(description="better, nothing_better, budget_too_small or error")
    finished: bool = Field(description="False while trials are still to come; ask again")
    config: Parameters | None = Field(description="Confirmed to be better than the default")
    smallest: Parameters | None
    gain_pct: float | None = Field(description="By how much the metric gets better: falls, where lower is better")
    ci95_low_pct: float | None
    ci95_high_pct: float | None
    comment: bool = Field(description="Worth a comment: a better configuration is confirmed")
    comment_reason: str
    reasons: list[str]
    url: str
    markdown: str

    @classmethod
    def of(cls, tuning: Tuning, answer: TuningAnswer, url: str) -> TuningAnswerOut:
        return cls(
            **{**vars(answer), "reasons": list(answer.reasons)},
            comment=answer.outcome == "better",
            comment_reason=answer.comment_reason,
            url=url,
            markdown=markdown(tuning, url, answer),
        )


class TuningPage(BaseModel):
    items: list[TuningRow]
    next_cursor: str = Field(description="Empty at the end")
