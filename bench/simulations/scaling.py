"""What docs/scaling.md promises of the law: how often the intervals of its parameters and of its limit hold the truth.

Points are throughputs with noise in proportion to them, as runs have it.
"""

from __future__ import annotations

import numpy as np

from bench.simulations.figures import Aim, Section
from experiments.analysis.scaling import fit_law

NOISE_RATIO = 0.02
CPUS = (1, 2, 4, 8, 16, 32, 64)
COVERED = 0.93
LAWS = (
    ("contention and coherency", (1000.0, 0.03, 0.0005), (0.94, 0.82, 0.70)),
    ("little of either", (1000.0, 0.02, 0.00005), (0.87, 0.66, 0.52)),
    ("contention alone", (1000.0, 0.10, 0.0), (0.97, 0.91, 0.47)),
)
"""Name, gamma (requests/s), alpha and beta of a law, and the coverage of their intervals when noise was constant."""


def laws(rng: np.random.Generator, trials: int) -> list[Aim]:
    """Coverage of 95 % intervals of gamma, alpha, beta and the limit under proportional noise."""
    n = np.array(CPUS, dtype=float)
    found = []
    for name, (gamma, alpha, beta), before in LAWS:
        x = gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))
        held, limits = np.zeros(3), []
        for _ in range(trials):
            law = fit_law(list(n), list(x * np.exp(rng.normal(0.0, NOISE_RATIO, len(n)))))
            if law is None:
                raise RuntimeError("there are enough points for a law")
            parameters = zip((law.gamma, law.alpha, law.beta), (gamma, alpha, beta), strict=True)
            held += [p.ci95 is not None and p.ci95[0] <= true <= p.ci95[1] for p, true in parameters]
            if law.limit_ci95_rps is not None:
                limits.append(law.limit_ci95_rps[0] <= gamma / alpha <= law.limit_ci95_rps[1])
        for what, share, was in zip(("gamma", "alpha", "beta"), held / trials, before, strict=True):
            found.append(Aim(f"{name}: interval of {what} holds it", float(share), COVERED, "at least", was))
        found.append(Aim(f"{name}: interval of the limit, where it is said", float(np.mean(limits)), 0.90, "at least"))
    return found


SECTIONS: tuple[Section, ...] = (Section("Scaling law", laws, 0.75),)
