"""How many repetitions a verdict needs, and which change matters. Why these numbers: docs/verdicts.md."""

from __future__ import annotations

MIN_FOR_INTERVAL = 3
MIN_FOR_VERDICT = 5

# Below this a bootstrap interval promises more than it holds (bench/simulations shows by how much).
MIN_FOR_BOOTSTRAP = 20

# The chance of a false alarm that a single look at the data may spend.
ALPHA = 0.05

# A change smaller than this is of no practical interest unless the experiment says otherwise.
MARGIN_RATIO = 0.03

# Beyond this many further repetitions per arm, less noise is the cheaper way to an answer.
MOST_WORTH_RUNNING = 50

# Above this many repetitions per arm "needed" is not worth a number.
MOST_REPETITIONS = 5000
