"""The columns of a JMeter result file that BenchHub reads, and what a table of rows must hold to be counted."""

from __future__ import annotations

import polars as pl

TIME, ELAPSED, LABEL, CODE = "timeStamp", "elapsed", "label", "responseCode"
MESSAGE, THREAD, SUCCESS = "responseMessage", "threadName", "success"
BYTES, SENT, ACTIVE = "bytes", "sentBytes", "allThreads"

KINDS: dict[str, type[pl.DataType]] = {
    TIME: pl.Int64,  # the start, in milliseconds since 1970
    ELAPSED: pl.Int64,
    LABEL: pl.String,
    CODE: pl.String,
    MESSAGE: pl.String,
    THREAD: pl.String,
    SUCCESS: pl.Boolean,
    BYTES: pl.Int64,
    SENT: pl.Int64,
    ACTIVE: pl.Int64,
}
NEEDED = (TIME, ELAPSED, LABEL, SUCCESS)
SUMMED = (BYTES, SENT)

TRANSACTION = "Number of samples in transaction"
"""How the message of a transaction controller begins; its row spans requests that have rows of their own."""
