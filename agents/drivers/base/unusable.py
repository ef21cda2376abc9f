"""When the figures of a report mean nothing, whatever tool printed them."""

from __future__ import annotations

from dataclasses import replace

from agents.results.report import LoadErrors, LoadReport

NO_REQUEST = "no request completed"
ERROR_PAGES = "every response was a non-2xx/3xx: the throughput is that of an error page"
ALL_FAILED = "every request failed: the throughput is that of failing, not of serving"


def why_unusable(requests: int, errors: LoadErrors, failed: int = 0) -> str | None:
    """Why the figures must not enter a comparison, in plain words; None when they may.

    `failed` are the failures, other than bad statuses, that the tool counts among its `requests`.
    """
    if requests == 0:
        return NO_REQUEST
    if errors.status is not None and errors.status >= requests:
        return ERROR_PAGES
    return ALL_FAILED if failed + (errors.status or 0) >= requests else None


def judged(report: LoadReport, *, failed: int = 0, why: str | None = None) -> LoadReport:
    """`report` with what its counts say about its use; `why` is a reason that only the reader knows."""
    why = why or why_unusable(report.requests or 0, report.errors, failed)
    return replace(report, usable=why is None, why=why)


def refused(report: LoadReport, error: str, *, started: bool = False) -> LoadReport:
    """The report of a tool that did not start, or gave up on the way."""
    happened = "gave up" if started else "did not start"
    return replace(report, complete=False, error=error, usable=False, why=f"the tool {happened}: {error}")
