"""Checks that need only the report of the load driver."""

from __future__ import annotations

from collections.abc import Callable

from experiments.analysis import saturation
from experiments.analysis.findings import Finding, LoadFigures, Thresholds, known, percent

_OVERLOAD = "overload arithmetic, docs/verdicts.md"
SHORT_S, MOMENT_S = 10.0, 1.0

LoadCheck = Callable[[LoadFigures, Thresholds], Finding | None]


def report_is_usable(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """An unreadable or empty report has no result in it."""
    if not load.usable:
        why = load.why or "the parser gave no reason"
        return Finding("report", "invalid", f"The report cannot be used: {why}.", {"tool": load.tool}, "parser")
    if load.requests == 0 or load.throughput_rps == 0:
        return Finding("report", "invalid", "No request was completed.", {"requests": 0}, "parser")
    if load.throughput_rps is None and not load.has_own_figures:
        return Finding("report", "invalid", "The report has no throughput.", {"tool": load.tool}, "parser")
    return None


def errors_are_within_budget(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Failed requests, bad statuses and socket errors; the budget is a share of the completed requests."""
    source = "BenchHub's choice: zero errors unless a budget is set"
    kinds = load.errors_by_kind
    if not kinds:
        return Finding("errors", "warn", f"{load.tool} did not say whether requests failed.", {}, source)
    total, requests = sum(kinds.values()), load.requests or 0
    evidence: dict[str, float | str] = {f"errors_{kind}": count for kind, count in kinds.items()}
    evidence |= {"requests": requests, "error_budget_ratio": limits.error_budget_ratio}
    if total <= limits.error_budget_ratio * requests:
        allowed = f", within the budget of {_budget(limits)}" if total else ""
        return Finding("errors", "ok", f"{total:,} errors in {requests:,} requests{allowed}.", evidence, source)
    parts = ", ".join(
        f"{'bad status' if kind == 'status' else kind} {count:,}" for kind, count in kinds.items() if count
    )
    budget = f" (budget {_budget(limits)})" if limits.error_budget_ratio else ""
    text = f"{total:,} errors beside {requests:,} completed requests{budget}: {parts}."
    if load.errors_status and load.errors_status == load.requests:
        text += " Every response was an error page, so this is the throughput of an error page."
    if load.errors_timeout and load.habits.timeouts_note:
        text += f" {load.habits.timeouts_note}"
    return Finding("errors", "invalid", text, evidence, source)


def connections_were_made(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Connections that were never made, or were lost and not made again, carry no load."""
    if not load.errors_connect or not load.connections:
        return None
    evidence = {"errors_connect": load.errors_connect, "connections": load.connections}
    if load.errors_connect <= limits.connect_error_ratio * load.connections:
        return None
    text = (
        f"{load.errors_connect:,} connect errors for {load.connections:,} connections: "
        "a connection that is not there sends no requests, so the load was not the one asked for."
    )
    return Finding("connect_errors", "invalid", text, evidence, "wrk and wrk2 source; limit 1 % is BenchHub's choice")


def latency_is_complete(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Some tools leave responses slower than their timeout out of the latency figures."""
    if not load.habits.omits_late_answers or not load.errors_timeout:
        return None
    text = (
        f"{load.errors_timeout:,} responses came after {load.tool}'s timeout and are missing from its latency figures: "
        "throughput is kept, latency is hidden."
    )
    return Finding("latency_complete", "warn", text, {"errors_timeout": load.errors_timeout}, f"{load.tool} source")


def offered_rate_was_reached(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Below the offered rate, latency is time spent in the backlog and grows with the length of the run."""
    if load.hides_unknown_backlog:
        text = (
            f"{load.tool} sends at an offered rate, and which one it was is not known: its latency may be the wait in "
            "the backlog and is hidden. Give its command line with the report."
        )
        return Finding("offered_rate", "warn", text, known(throughput_rps=load.throughput_rps), _OVERLOAD)
    if load.load_model != "open" or not load.offered_rate_rps or load.throughput_rps is None:
        return None
    ratio = load.throughput_rps / load.offered_rate_rps
    evidence = {
        "achieved_ratio": round(ratio, 4),
        "throughput_rps": load.throughput_rps,
        "offered_rate_rps": load.offered_rate_rps,
    }
    share = percent(ratio, 1)
    reached = f"{load.throughput_rps:,.0f} of {load.offered_rate_rps:,.0f} offered requests/s were reached ({share})"
    if ratio < limits.saturated_below_ratio:
        text = f"Saturated: {reached}; throughput is kept, latency is hidden because it is the wait in the backlog."
        return Finding("offered_rate", "warn", text, evidence, _OVERLOAD)
    if ratio < limits.nearly_saturated_below_ratio:
        return Finding("offered_rate", "warn", f"Close to saturation: {reached}.", evidence, _OVERLOAD)
    return Finding("offered_rate", "ok", f"{reached}.", evidence, _OVERLOAD)


def nothing_was_dropped(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """What a tool did not send because nobody was free to is in no figure of it."""
    if load.dropped_iterations is None or not load.requests:
        return None
    dropped, share = load.dropped_iterations, load.dropped_iterations / (load.dropped_iterations + load.requests)
    evidence = {"dropped_iterations": dropped, "requests": load.requests}
    source = f"documentation of {load.tool}; the limit is BenchHub's choice"
    if not dropped:
        return Finding("dropped", "ok", f"{load.tool} dropped no iteration.", evidence, source)
    what, they = ("1 iteration", "it is") if dropped == 1 else (f"{dropped:,} iterations", "they are")
    text = (
        f"{load.tool} dropped {what}, {percent(share, 1)} of what was due, because none of its users was free: "
        f"{they} missing from throughput and latency. Give it more users, or offer less."
    )
    return Finding("dropped", "invalid" if share > 1 - limits.saturated_below_ratio else "warn", text, evidence, source)


def tool_s_thresholds_were_kept(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """The limits that the author of a script set in the tool itself."""
    failed, passed = load.thresholds_failed, load.thresholds_passed
    if not failed and not passed:
        return None
    evidence = known(thresholds_failed=failed, thresholds_passed=passed)
    source = f"{load.tool}'s own thresholds, as its script sets them"
    if failed:
        text = f"{load.tool}'s own thresholds were not kept: {failed}."
        return Finding("tool_thresholds", "warn", text, evidence, source)
    return Finding("tool_thresholds", "ok", f"{load.tool}'s own thresholds were kept: {passed}.", evidence, source)


def load_lasted(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """With latency from the planned send time, the longest one tells how far through the plan the load came."""
    on_plan = load.habits.queues_due and load.latency_basis == "response_time"
    if not on_plan or not load.offered_rate_rps or not load.requests or not load.throughput_rps:
        return None
    if load.window_s is None or load.latency_max_ms is None:
        return None
    seen = saturation.examine(
        offered_rate_rps=load.offered_rate_rps,
        throughput_rps=load.throughput_rps,
        requests=load.requests + load.unanswered,
        duration_s=load.window_s,
        connections=load.connections,
        threads=load.threads,
        latency_max_ms=load.latency_max_ms,
        stopped_early_ratio=limits.stopped_early_ratio,
    )
    if "LOAD_STOPPED_EARLY" not in seen.flags or seen.t_last_s is None:
        return None
    evidence = {
        "t_last_s": round(seen.t_last_s, 2),
        "duration_s": load.window_s,
        "active_rate_rps": round(seen.active_rate_rps),
        "latency_max_ms": load.latency_max_ms,
    }
    digits = 0 if round(seen.t_last_s) < round(load.window_s) else 1
    rate = float(f"{seen.active_rate_rps:.4g}")
    text = (
        f"Judging by its longest latency, the load had stopped after about {seen.t_last_s:.{digits}f} s of "
        f"{load.window_s:.{digits}f} s. Until then it made about {rate:,.0f} requests/s; the reported "
        f"{load.throughput_rps:,.0f} requests/s is an average over the dead time too."
    )
    return Finding("load_lasted", "invalid", text, evidence, _OVERLOAD)


def duration_was_kept(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A run that ended before its time measured something else than asked."""
    asked, measured = load.requested_duration_s or load.least_duration_s, load.measured_s
    if not asked or measured is None:
        return None
    short = 1 - measured / asked
    evidence = {"requested_s": asked, "measured_s": round(measured, 2)}
    source = "wrk and wrk2 source: requests / throughput is the true duration; limit 2 % is BenchHub's choice"
    if short > limits.short_duration_ratio:
        text = f"The run lasted {measured:.1f} s of the {asked:.1f} s asked for, {percent(short, 1)} too short."
        return Finding("duration", "invalid", text, evidence, source)
    if not load.requested_duration_s:
        text = f"The run lasted {measured:.1f} s, as long as its report says that it should."
        return Finding("duration", "ok", text, {"measured_s": round(measured, 2)}, source)
    return Finding(
        "duration", "ok", f"The run lasted {measured:.1f} s; {asked:.1f} s were asked for.", evidence, source
    )


def window_is_long_enough(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A rate over a moment is the rate of that moment."""
    measured_s = load.measured_s
    if measured_s is None or measured_s >= SHORT_S:
        return None
    source = "BenchHub's choice"
    if measured_s < MOMENT_S:
        text = f"Only {measured_s * 1000:.0f} ms were measured: a pause or a burst of a moment is the whole result."
        return Finding("window", "warn", text, {"measured_s": measured_s}, source)
    text = f"Only {measured_s:.1f} s were measured: under {SHORT_S:.0f} s nothing tells what lasts from what passes."
    return Finding("window", "skipped", text, {"measured_s": measured_s}, source)


def load_did_not_stall(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Samples of a thread's rate are taken while answers came in, so they do not see dead time; the throughput does."""
    sample_ms = load.habits.thread_rate_sample_ms
    if sample_ms is None or not load.thread_rps_mean or not load.threads or not load.throughput_rps:
        return None
    # Slower answers come in bursts that distort the samples.
    if load.latency_mean_ms is None or load.latency_mean_ms > sample_ms:
        return None
    gap = load.thread_rps_mean * load.threads / load.throughput_rps
    if gap <= limits.stall_gap_ratio:
        return None
    evidence = {
        "gap_ratio": round(gap, 2),
        "thread_rps_mean": load.thread_rps_mean,
        "threads": load.threads,
        "throughput_rps": load.throughput_rps,
    }
    text = (
        f"The load stalled: while answers came in the {load.threads} threads made "
        f"{load.thread_rps_mean * load.threads:,.0f} requests/s, {gap:.1f} times the {load.throughput_rps:,.0f} "
        "requests/s over the whole run, so for part of the time nothing was answered."
    )
    return Finding("stall", "invalid", text, evidence, f"{load.tool} source; limit 1.5 is BenchHub's choice")


def latency_counts_from(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Where latency begins decides what it leaves out; two runs with different beginnings share no line."""
    source = "coordinated omission: G. Tene; wrk and wrk2 source"
    ratio = load.throughput_rps / load.offered_rate_rps if load.throughput_rps and load.offered_rate_rps else None
    evidence = known(latency_basis=load.latency_basis, load_model=load.load_model, achieved_ratio=ratio)
    if load.latency_basis == "response_time":
        text = (
            "Latency counts from when a request was due, so the wait for its turn is in it."
            if load.load_model == "open"
            else "Latency is all that a user waited for an answer (response time); while the server stalls a closed "
            "loop sends nothing, so a stall counts once per user."
        )
        return Finding("latency_basis", "ok", text, evidence, source)
    if load.load_model == "open" and ratio is not None and ratio < limits.nearly_saturated_below_ratio:
        text = (
            f"{load.tool} counts latency from when a request was sent, and {percent(1 - ratio, 1)} of the offered "
            "requests were not sent in time: their wait is in no latency figure (coordinated omission)."
        )
        return Finding("latency_basis", "warn", text, evidence, source)
    text = (
        "Latency counts from when a request was sent (service time): while the server stalls a closed loop sends "
        "nothing, so a stall counts once per connection. Do not compare it with response times."
        if load.load_model == "closed"
        else "Latency counts from when a request was sent (service time); all requests were sent in time."
    )
    return Finding("latency_basis", "ok", text, evidence, source)


def load_obeys_littles_law(load: LoadFigures, limits: Thresholds) -> Finding | None:
    """In a closed loop every connection always waits for one answer: throughput * latency = connections."""
    if not load.habits.back_to_back or not load.throughput_rps or not load.connections:
        return None
    if load.latency_mean_ms is None:
        return None
    waiting = load.throughput_rps * load.latency_mean_ms / 1000
    ratio = waiting / load.connections
    evidence = {"waiting_connections": round(waiting, 1), "connections": load.connections, "ratio": round(ratio, 2)}
    source = "Little's law; limit 25 % is BenchHub's choice"
    if abs(ratio - 1) <= limits.little_tolerance_ratio:
        text = f"Throughput times latency gives {waiting:.1f} busy connections of {load.connections}."
        return Finding("littles_law", "ok", text, evidence, source)
    meaning = (
        "some connections were idle or dead"
        if ratio < 1
        else f"{load.tool} filled in latencies for long pauses, so its mean is more than the requests really waited"
    )
    text = (
        f"Throughput times mean latency gives {waiting:.1f} busy connections where {load.connections} exist: {meaning}."
    )
    return Finding("littles_law", "warn", text, evidence, source)


def _budget(limits: Thresholds) -> str:
    return f"{limits.error_budget_ratio * 100:g} %"


LOAD_CHECKS: tuple[LoadCheck, ...] = (
    errors_are_within_budget,
    connections_were_made,
    load_lasted,
    offered_rate_was_reached,
    nothing_was_dropped,
    tool_s_thresholds_were_kept,
    duration_was_kept,
    window_is_long_enough,
    load_did_not_stall,
    latency_is_complete,
    latency_counts_from,
    load_obeys_littles_law,
)
