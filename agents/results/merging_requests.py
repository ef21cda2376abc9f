"""Putting together what several load tools tell of every request: by label, by code, and how requests failed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from agents.results.elapsed_counts import added
from agents.results.merging_course import course_of_all
from agents.results.merging_latency import latency_of_all, sum_known
from agents.results.report import LatencySummary, LoadReport
from agents.results.request_figures import Failure, LabelFigures, RequestFigures

TRANSACTION_SUFFIX = " (transaction)"
NO_LABEL_TIMES = "no percentiles of {}: a load tool had too many different times to keep those of every label"
NAMED_LABELS = 3
SHIFT_RATIO = 0.05
"""By how much of the whole time the first requests of several tools may lie apart without a note."""


def requests_of_all(
    reports: Sequence[LoadReport], notes: list[str], ahead_s: Sequence[float] = ()
) -> RequestFigures | None:
    """The figures of all requests; None unless every tool told of every request.

    Percentiles of a label come from its exact times, or are left out and `notes` says so. When the first request began
    and the last ended is told by the clock of the first tool's host. For `ahead_s` see `course_of_all`.
    """
    figures = [report.more for report in reports if isinstance(report.more, RequestFigures)]
    if len(figures) < len(reports):
        return None
    errors, requests = sum(one.errors for one in figures), sum_known([report.requests for report in reports])
    course = course_of_all([one.course for one in figures], ahead_s)
    started_ms = _by_one_clock([one.started_ms for one in figures], ahead_s)
    ended_ms = _by_one_clock([one.ended_ms for one in figures], ahead_s)
    if started_ms and ended_ms and _shift(started_ms) > SHIFT_RATIO * (max(ended_ms) - min(started_ms)):
        notes.append(
            f"the load tools sent their first requests {_shift(started_ms) / 1000:.1f} s apart: not all of them loaded "
            "the server all the time, and the sum of their rates is more than it answered at once"
        )
    return RequestFigures(
        started_ms=min(started_ms, default=None),
        ended_ms=max(ended_ms, default=None),
        errors=errors,
        error_pct=100 * errors / requests if requests else 0.0,
        rows=sum(one.rows for one in figures),
        parts=sum(one.parts for one in figures),
        response_codes=_codes([one.response_codes for one in figures]),
        labels=_labels([one.labels for one in figures], notes),
        failures=_failures([one.failures for one in figures]),
        sent_bytes=sum_known([one.sent_bytes for one in figures]),
        max_active_threads=max(course.active_threads) if course and course.active_threads else None,
        course=course,
    )


def _by_one_clock(several: Sequence[int | None], ahead_s: Sequence[float]) -> list[int]:
    """The times by the clock of the first tool's host; empty when a tool has none."""
    ahead_ms = [round(one * 1000) for one in ahead_s] or [0] * len(several)
    known = [at - ahead for at, ahead in zip(several, ahead_ms, strict=True) if at is not None]
    return known if len(known) == len(several) else []


def _shift(times: Sequence[int]) -> int:
    return max(times) - min(times)


def _labels(several: Sequence[Mapping[str, LabelFigures]], notes: list[str]) -> dict[str, LabelFigures]:
    """As the reader of one file orders them: requests, then transactions, each by name."""
    found: defaultdict[tuple[bool, str], list[LabelFigures]] = defaultdict(list)
    for labels in several:
        for name, figures in labels.items():
            found[figures.transaction, _own_name(name, labels)].append(figures)
    merged: dict[str, LabelFigures] = {}
    for (_, name), each in sorted(found.items(), key=lambda item: item[0]):
        merged[f"{name}{TRANSACTION_SUFFIX}" if name in merged else name] = _label(each)
    cut = [name for name, figures in merged.items() if figures.elapsed is None]
    if cut:
        more = f" and {len(cut) - NAMED_LABELS:,} more labels" if len(cut) > NAMED_LABELS else ""
        notes.append(NO_LABEL_TIMES.format(", ".join(cut[:NAMED_LABELS]) + more))
    return merged


def _own_name(name: str, labels: Mapping[str, LabelFigures]) -> str:
    """The name without what tells a transaction from requests of the same name in its file."""
    own = name.removesuffix(TRANSACTION_SUFFIX)
    return own if own in labels and labels[name].transaction and not labels[own].transaction else name


def _label(each: Sequence[LabelFigures]) -> LabelFigures:
    """The rate is that of all requests over the longest of the durations, which no clock has to agree on."""
    requests = sum(one.requests for one in each)
    elapsed = [one.elapsed for one in each if one.elapsed is not None]
    duration_s = max((one.duration_s for one in each if one.duration_s is not None), default=0.0)
    whole = added(elapsed) if len(elapsed) == len(each) else None
    return LabelFigures(
        requests=requests,
        errors=sum(one.errors for one in each),
        latency=whole.latency() if whole is not None else _without_percentiles(each),
        throughput_rps=requests / duration_s if duration_s > 0 else None,
        bytes_read=sum_known([one.bytes_read for one in each]),
        transaction=each[0].transaction,
        duration_s=duration_s,
        elapsed=whole,
    )


def _without_percentiles(each: Sequence[LabelFigures]) -> LatencySummary:
    one = latency_of_all([one.latency for one in each], [one.requests for one in each], [])
    return one or LatencySummary()


def _codes(several: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for codes in several:
        total.update(codes)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def _failures(several: Sequence[Sequence[Failure]]) -> tuple[Failure, ...]:
    """The most frequent first."""
    total: Counter[tuple[str, str, str]] = Counter()
    for failures in several:
        for one in failures:
            total[one.label, one.code, one.message] += one.count
    return tuple(Failure(*words, count) for words, count in sorted(total.items(), key=lambda item: (-item[1], item[0])))
