"""Figures that belong together for runs that never ran: the demonstration's history and seeded teams use them."""

from __future__ import annotations

import hashlib

import numpy as np


def made_up_metrics(throughput_rps: float, random: np.random.Generator, *, connections: int = 32) -> dict[str, float]:
    """The metrics of one run. Connections in a closed loop make latency the inverse of throughput."""
    mean_ms = connections / throughput_rps * 1000
    return {
        "throughput_rps": round(throughput_rps, 2),
        "latency_mean_ms": round(mean_ms, 3),
        "latency_p50_ms": round(mean_ms * 0.93, 3),
        "latency_p90_ms": round(mean_ms * 1.5, 3),
        "latency_p99_ms": round(mean_ms * 3.1 * float(np.exp(random.normal(0, 0.05))), 3),
        "errors_total": 0.0,
        "sut_cpu_ratio": round(min(0.99, 0.96 + float(random.normal(0, 0.008))), 3),
        "driver_cpu_ratio": round(0.61 + float(random.normal(0, 0.01)), 3),
    }


def digest_of(text: str) -> str:
    """SHA-256 in hex, for the digests and fingerprints of made-up things."""
    return hashlib.sha256(text.encode()).hexdigest()
