"""Reads mutated reports of every load tool: each gives figures or a ParseError, in at most 2 s of CPU time.

    python -m bench.fuzz_parsers --examples 50000 [--kind k6] [--seed 1]

Exit status 1 when another error came, or when a text took longer; the texts that did so are kept in the directory of
`--keep` (default: the current one).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from random import Random

from agents.drivers import DRIVERS
from agents.drivers.reading import read_report
from agents.errors import ParseError
from tests.agents.mutations import mutate
from tests.agents.recorded import cases

LIMIT_S = 2.0


def fuzz(kind: str, examples: int, seed: int, keep: Path) -> bool:
    """Read that many mutated reports of one tool; print what came out of it. False when something was wrong."""
    random = Random(f"{seed} {kind}")  # noqa: S311 - repeatable, not secret
    texts = [case.text for case in cases(kind)]
    read = refused = wrong = 0
    slowest_s = 0.0
    for _ in range(examples):
        text = mutate(random, random.choice(texts), texts)
        start_s = time.process_time()
        try:
            json.dumps(read_report(kind, text).to_json(), allow_nan=False)
            read += 1
        except ParseError:
            refused += 1
        except Exception as error:
            wrong += 1
            (keep / f"fuzz-{kind}-{wrong}.txt").write_text(text, encoding="utf-8", errors="surrogatepass")
            print(f"{kind}: {type(error).__name__}: {str(error)[:200]}", flush=True)
        took_s = time.process_time() - start_s
        if took_s > LIMIT_S:
            (keep / f"fuzz-{kind}-slow.txt").write_text(text, encoding="utf-8", errors="surrogatepass")
        slowest_s = max(slowest_s, took_s)
    print(
        f"{kind}: {examples} texts, {read} read, {refused} refused, {wrong} wrong; slowest {slowest_s:.2f} s",
        flush=True,
    )
    return not wrong and slowest_s <= LIMIT_S


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=50_000)
    parser.add_argument("--kind", choices=sorted(DRIVERS), action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path())
    options = parser.parse_args()
    good = [fuzz(kind, options.examples, options.seed, options.keep) for kind in options.kind or sorted(DRIVERS)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
