"""Why a comparison has no verdict: the reason, and a sentence that says what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.outcomes import Undecided, why_undecided
from experiments.analysis.verdict import Verdict
from experiments.models import Experiment, Run, Variant
from experiments.registry.metrics.vocabulary import label_of
from experiments.registry.runs.summary import figure

MOST_WORDS = 160
"""Letters of a failure that a sentence repeats."""


@dataclass(frozen=True)
class Counts:
    """The runs of one variant for one metric: those that ended, that count, that failed, and whose figure is 0."""

    finished: int
    counted: int
    failed: int
    zeros: int
    failure: str

    @classmethod
    def of(cls, runs: Iterable[Run], metric: str) -> Counts:
        ended = list(runs)
        figures = [figure(run, metric) for run in ended if run.is_usable]
        failures = [run.failure for run in ended if run.outcome == Run.Outcome.FAILED]
        return cls(
            finished=len(ended),
            counted=sum(value is not None and value > 0 for value in figures),
            failed=len(failures),
            zeros=sum(value is not None and value <= 0 for value in figures),
            failure=failures[-1] if failures else "",
        )


class Undeciding:
    """The reasons of one experiment, its unfinished runs read once."""

    def __init__(self, experiment: Experiment, finished: Sequence[Run]) -> None:
        self._finished = [run for run in finished if experiment.compares(run.block)]
        live = experiment.runs.kept().plain().exclude(state=Run.State.FINISHED).values_list("variant_id", "block")
        self._live = [variant for variant, block in live if experiment.compares(block)]

    def reason(
        self, baseline: Variant, candidate: Variant, metric: str, verdict: Verdict, said: str
    ) -> tuple[str, str]:
        """The reason and the sentence. `said` is how far the repetitions have come."""
        a, b = (
            Counts.of((run for run in self._finished if run.variant_id == variant.pk), metric)
            for variant in (baseline, candidate)
        )
        why = why_undecided(
            counted=(a.counted, b.counted),
            finished=(a.finished, b.finished),
            live=sum(pk in (baseline.pk, candidate.pk) for pk in self._live),
            failed=b.failed,
            zeros=a.zeros + b.zeros,
        )
        sentence = _sentence(why, baseline, candidate, metric, verdict, said, a, b)
        if why in ("baseline", "candidate"):
            side = baseline if why == "baseline" else candidate
            sentence += _commonest([run for run in self._finished if run.variant_id == side.pk and not run.is_usable])
        return why, sentence


def _commonest(doubtful: Sequence[Run]) -> str:
    """What most of these runs do not count for, in the words of the last of them; "" when none of them says."""
    found = Run.objects.filter(pk__in=[run.pk for run in doubtful]).order_by("pk").values_list("findings", "failure")
    reasons: dict[str, str] = {}
    times: Counter[str] = Counter()
    for findings, failure in found:
        said = {one["check"]: one["sentence"] for one in findings if one["level"] == "invalid"}
        if failure:
            said["failed"] = f"It failed: {_first_sentence(failure)}"
        times.update(said.keys())
        reasons |= said
    if not times:
        return ""
    check, count = times.most_common(1)[0]
    return f" In {count} of {len(doubtful)} that do not: {reasons[check]}"


def _sentence(
    why: Undecided,
    baseline: Variant,
    candidate: Variant,
    metric: str,
    verdict: Verdict,
    said: str,
    a: Counts,
    b: Counts,
) -> str:
    label, bare = label_of(metric), said.removesuffix(".")
    if why == "running":
        return f"{bare}; its runs are under way."
    if why == "too_few":
        more = MIN_FOR_VERDICT - min(verdict.n_a, verdict.n_b)
        return f"{bare}; all that were asked for have ended, so add {more} or more."
    if why == "fails":
        runs = "its only run" if b.failed == 1 else f"all {b.failed} of its runs"
        return f"{candidate.name} fails: {runs} failed. {_first_sentence(b.failure)}".rstrip()
    if why == "zero":
        zeros, which = a.zeros + b.zeros, "run" if a.zeros + b.zeros == 1 else "runs"
        return f"{label}: no verdict on {candidate.name}: it is 0 in {zeros} {which}, and a change of 0 has no size."
    side, of = (baseline, a) if why == "baseline" else (candidate, b)
    counts = "counts" if of.counted == 1 else "count"
    return (
        f"{label}: no verdict on {candidate.name}: {of.counted} of {of.finished} runs of {side.name} {counts}, "
        f"{MIN_FOR_VERDICT} are needed."
    )


def _first_sentence(failure: str) -> str:
    line = failure.strip().splitlines()[0] if failure.strip() else ""
    return line if len(line) <= MOST_WORDS else f"{line[: MOST_WORDS - 1]}…"
