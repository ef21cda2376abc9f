"""One table of every word that a page shows as a badge: tone, icon and text, so that colour never stands alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Badge:
    """`tone` is good, bad, warn, info or neutral."""

    tone: str
    icon: str
    text: str


BADGES: dict[str, dict[str, Badge]] = {
    "state": {
        "queued": Badge("neutral", "clock", "Queued"),
        "preparing": Badge("info", "spinner", "Preparing"),
        "warming_up": Badge("info", "spinner", "Warming up"),
        "measuring": Badge("info", "spinner", "Measuring"),
        "collecting": Badge("info", "spinner", "Collecting"),
        "restoring": Badge("info", "undo", "Restoring"),
        "finished": Badge("neutral", "check", "Finished"),
    },
    "outcome": {
        "": Badge("neutral", "dot", "Not finished"),
        "succeeded": Badge("good", "check", "Succeeded"),
        "failed": Badge("bad", "cross", "Failed"),
        "cancelled": Badge("neutral", "stop", "Cancelled"),
        "lost": Badge("bad", "question", "Lost"),
    },
    "validity": {
        "": Badge("neutral", "dot", "Not judged"),
        "valid": Badge("good", "check", "Valid"),
        "suspect": Badge("warn", "warning", "Suspect"),
        "invalid": Badge("bad", "cross", "Invalid"),
    },
    "restore": {
        "": Badge("neutral", "dot", "Nothing changed"),
        "verified": Badge("good", "shield", "Restored, verified"),
        "dirty": Badge("bad", "warning", "Host dirty"),
    },
    "verdict": {
        "better": Badge("good", "up", "Better"),
        "better_size_uncertain": Badge("good", "up", "Better, size uncertain"),
        "worse": Badge("bad", "down", "Worse"),
        "worse_size_uncertain": Badge("bad", "down", "Worse, size uncertain"),
        "no_practical_difference": Badge("neutral", "equal", "No difference"),
        "inconclusive": Badge("warn", "question", "Inconclusive"),
        "not_held": Badge("neutral", "question", "Does not hold"),
        "invalid": Badge("neutral", "question", "No verdict"),
        "running": Badge("info", "clock", "Still running"),
        "too_few": Badge("neutral", "clock", "Too few repetitions"),
        "fails": Badge("bad", "cross", "Fails"),
        "baseline": Badge("warn", "warning", "No baseline"),
        "candidate": Badge("warn", "warning", "Does not count"),
        "zero": Badge("neutral", "dot", "A figure of 0"),
    },
    "ranking": {
        "best": Badge("good", "up", "Best"),
        "tied": Badge("neutral", "equal", "Not distinguishable from the best"),
        "behind": Badge("bad", "down", "Behind"),
        "open": Badge("neutral", "clock", "Too few repetitions"),
    },
    "finding": {
        "ok": Badge("good", "check", "OK"),
        "warn": Badge("warn", "warning", "Warning"),
        "invalid": Badge("bad", "cross", "Invalid"),
        "skipped": Badge("neutral", "dot", "Not checked"),
    },
    "host": {
        "new": Badge("warn", "key", "Key not approved"),
        "ready": Badge("good", "check", "Ready"),
        "dirty": Badge("bad", "warning", "Dirty"),
        "unreachable": Badge("bad", "cross", "Unreachable"),
        "drained": Badge("neutral", "stop", "Drained"),
        "leased": Badge("info", "lock", "In use"),
    },
    "queue": {
        "ok": Badge("good", "check", "Moves"),
        "busy": Badge("info", "spinner", "Busy"),
        "unknown": Badge("warn", "question", "Unknown"),
        "stuck": Badge("bad", "cross", "Stuck"),
    },
    "worker": {
        "alive": Badge("good", "check", "There"),
        "silent": Badge("bad", "cross", "Silent"),
    },
    "experiment": {
        "draft": Badge("neutral", "edit", "Draft"),
        "running": Badge("info", "spinner", "Running"),
        "paused": Badge("warn", "clock", "Paused"),
        "blocked": Badge("bad", "warning", "Blocked"),
        "finished": Badge("good", "check", "Finished"),
        "cancelled": Badge("neutral", "stop", "Cancelled"),
    },
    "search": {
        "running": Badge("info", "spinner", "Searching"),
        "finished": Badge("good", "check", "Found"),
        "stopped": Badge("warn", "warning", "Stopped"),
        "cancelled": Badge("neutral", "stop", "Cancelled"),
    },
    "gate": {
        "pass": Badge("good", "check", "Pass"),
        "fail": Badge("bad", "cross", "Fail"),
        "inconclusive": Badge("warn", "question", "Inconclusive"),
        "error": Badge("bad", "warning", "Error"),
    },
    "step": {
        "good": Badge("good", "check", "Not worse"),
        "bad": Badge("bad", "down", "Worse"),
        "unclear": Badge("warn", "question", "Unclear"),
    },
    "inquiry": {
        "running": Badge("info", "spinner", "Searching"),
        "finished": Badge("neutral", "check", "Finished"),
        "stopped": Badge("warn", "warning", "Stopped"),
        "cancelled": Badge("neutral", "stop", "Cancelled"),
    },
    "tuning": {
        "better": Badge("good", "up", "Better"),
        "nothing_better": Badge("neutral", "equal", "Nothing better"),
        "budget_too_small": Badge("warn", "question", "Budget too small"),
    },
    "tuning_trial": {
        "ok": Badge("good", "check", "Measured"),
        "over": Badge("warn", "warning", "Breaks a limit"),
        "invalid": Badge("warn", "undo", "Invalid"),
        "crashed": Badge("bad", "cross", "Crashed"),
        "refused": Badge("bad", "stop", "Refused"),
        "cancelled": Badge("neutral", "stop", "Cancelled"),
    },
    "schedule": {
        "active": Badge("good", "clock", "Active"),
        "paused": Badge("warn", "stop", "Paused"),
    },
    "occasion": {
        "launched": Badge("good", "check", "Launched"),
        "overlap": Badge("neutral", "clock", "Skipped, still open"),
        "unchanged": Badge("neutral", "equal", "Skipped, unchanged"),
        "failed": Badge("bad", "cross", "Failed"),
    },
    "prometheus": {
        "on": Badge("good", "check", "On"),
        "off": Badge("warn", "stop", "Off"),
    },
    "webhook": {
        "on": Badge("good", "check", "On"),
        "off": Badge("warn", "stop", "Off"),
    },
    "delivery": {
        "waiting": Badge("info", "clock", "Waiting"),
        "delivered": Badge("good", "check", "Delivered"),
        "given_up": Badge("bad", "cross", "Given up"),
    },
    "function": {
        "more": Badge("bad", "up", "Costs more"),
        "less": Badge("good", "down", "Costs less"),
        "not_separated": Badge("neutral", "equal", "Not separated"),
        "too_few": Badge("neutral", "clock", "Too few runs"),
    },
    "evidence": {
        "interval": Badge("info", "check", "Shown"),
        "difference": Badge("neutral", "question", "Differs"),
        "against": Badge("neutral", "undo", "Other direction"),
    },
    "quadrant": {
        "low_cpu_low_tps": Badge("bad", "clock", "Low CPU, low tps"),
        "high_cpu_low_tps": Badge("bad", "up", "High CPU, low tps"),
        "cheaper_but_slower": Badge("warn", "question", "Cheaper, yet slower"),
        "as_fast": Badge("neutral", "equal", "Not slower"),
        "unclear": Badge("neutral", "question", "Unclear"),
        "too_early": Badge("neutral", "clock", "Too early"),
    },
    "trial": {
        "pass": Badge("good", "check", "Passed"),
        "fail": Badge("bad", "cross", "Failed"),
        "invalid": Badge("warn", "warning", "Invalid"),
    },
    "alert": {
        "suspected": Badge("neutral", "question", "Suspected"),
        "confirmed": Badge("info", "check", "Confirmed"),
        "missing": Badge("warn", "clock", "No more data"),
        "gone": Badge("neutral", "dot", "No longer shown"),
    },
    "triage": {
        "untriaged": Badge("warn", "bell", "Untriaged"),
        "acknowledged": Badge("info", "user", "Acknowledged"),
        "expected": Badge("neutral", "equal", "Expected"),
        "infra": Badge("neutral", "server", "Infrastructure"),
        "invalid": Badge("neutral", "cross", "Not a change"),
        "fixed": Badge("good", "check", "Fixed"),
    },
    "result": {
        "applied": Badge("good", "check", "Applied"),
        "unchanged": Badge("neutral", "equal", "Unchanged"),
        "unsupported": Badge("warn", "question", "Not on this host"),
        "refused": Badge("bad", "cross", "Refused"),
    },
}
