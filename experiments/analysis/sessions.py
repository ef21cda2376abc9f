"""A candidate against runs of other sessions: what differs from session to session counts as noise.

Two levels of repetition, as Kalibera and Jones (2013) have them: runs inside sessions. The candidate is one session, so
it cannot say how sessions differ; earlier ones do. Definitions: docs/verdicts.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.limits import ALPHA, MARGIN_RATIO, MIN_FOR_INTERVAL
from experiments.analysis.verdict import LogChange, Verdict, verdict_of

Session = Sequence[float]


@dataclass(frozen=True)
class SessionNoise:
    """Variances of logs: `between` is that of session means, `own` what sessions add to it, `within` that of runs.

    `within_degrees` may be 0: no session has two runs.
    """

    sessions: int
    between: float
    own: float
    within: float
    within_degrees: int


def noise_of(sessions: Sequence[Session], candidate: Session) -> SessionNoise:
    """How much sessions differ, and how much runs of one do; both in the square of a log.

    ValueError: there are fewer than two sessions, or a figure is not positive.
    """
    if len(sessions) < 2:
        raise ValueError("one session does not tell how much sessions differ")
    logs = [_logs(session) for session in (*sessions, candidate)]
    degrees = sum(len(one) - 1 for one in logs)
    within = sum(float(((one - one.mean()) ** 2).sum()) for one in logs) / degrees if degrees else 0.0
    between = float(np.var([one.mean() for one in logs[:-1]], ddof=1))
    inside = within * float(np.mean([1 / len(one) for one in logs[:-1]]))
    return SessionNoise(len(sessions), between, max(between - inside, 0.0), within, degrees)


def judge_session(
    reference: Sequence[Session],
    candidate: Session,
    *,
    earlier: Sequence[Session],
    higher_is_better: bool,
    margin_ratio: float = MARGIN_RATIO,
    alpha: float = ALPHA,
) -> Verdict:
    """Compare the runs of one session with the mean of the `reference` sessions; figures per run, positive.

    `earlier` are the sessions that tell how much they differ from each other, those of the reference or others of the
    same history. `n_a` of the verdict counts them, `n_b` the runs of the candidate. ValueError: a figure is not
    positive.
    """
    change = None
    reference, earlier = [one for one in reference if len(one)], [one for one in earlier if len(one)]
    known = bool(reference and len(candidate))
    if known and len(earlier) >= MIN_FOR_INTERVAL:
        change = _change(reference, candidate, noise_of(earlier, candidate))
    estimate = _mean(reference, candidate) if known else None
    return verdict_of(
        change,
        estimate=estimate,
        n_a=len(earlier) if known else 0,
        n_b=len(candidate),
        n=len(earlier) if known else 0,
        higher_is_better=higher_is_better,
        margin_ratio=margin_ratio,
        alpha=alpha,
        design="sessions",
    )


def _change(reference: Sequence[Session], candidate: Session, noise: SessionNoise) -> LogChange:
    """Satterthwaite's degrees of freedom for the sum of what sessions and runs add to the variance of the change."""
    k = len(reference)
    runs = float(np.mean([1 / len(session) for session in reference])) / k + 1 / len(candidate)
    inside = runs * noise.within
    sessions = noise.own * (1 + 1 / k)
    variance = sessions + inside
    squares = [(noise.between * (1 + 1 / k)) ** 2 / (noise.sessions - 1)]
    if noise.within_degrees:
        squares.append((inside - noise.within * _share_inside(noise) * (1 + 1 / k)) ** 2 / noise.within_degrees)
    else:  # nobody knows how single runs of one session differ: all that differs is the sessions'
        variance = noise.between * (1 + 1 / k)
    degrees = variance**2 / sum(squares) if variance > 0 else noise.sessions - 1
    degrees = min(max(degrees, 1.0), noise.sessions - 1 + noise.within_degrees)
    return LogChange(_mean(reference, candidate), math.sqrt(variance), degrees, math.sqrt(noise.between))


def _share_inside(noise: SessionNoise) -> float:
    """What part of the variance of runs stays in the mean of a session."""
    return (noise.between - noise.own) / noise.within if noise.own > 0 and noise.within > 0 else 0.0


def _mean(reference: Sequence[Session], candidate: Session) -> float:
    return float(_logs(candidate).mean() - np.mean([_logs(session).mean() for session in reference]))


def _logs(values: Session) -> NDArray[np.float64]:
    found = np.array(values, dtype=np.float64)
    if not (np.isfinite(found) & (found > 0)).all():
        raise ValueError("only positive numbers can be compared; leave invalid runs out")
    logs: NDArray[np.float64] = np.log(found)
    return logs
