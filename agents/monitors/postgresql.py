"""What a PostgreSQL of a run does: transactions, blocks read and found in memory, its log, and who waits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_QUERY = """
SELECT 'benchhub', sum(xact_commit), sum(xact_rollback), sum(blks_read), sum(blks_hit), sum(temp_bytes),
  pg_current_wal_insert_lsn() - '0/0', current_setting('block_size'),
  (SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()),
  (SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event_type IN ('Lock', 'LWLock')),
  (SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event_type = 'IO')
FROM pg_stat_database
"""
# Only a server that BenchHub made has its socket and this file above its data. The rest is the shell's own.
_SNIPPET = """\
  for one in {pids}; do
    [ -r "/proc/$one/cwd/../pg_hba.conf" ] || continue
    for socket in /proc/$one/cwd/../.s.PGSQL.[0-9]*[0-9]; do
      [ -S "$socket" ] || continue
      postgres=$(readlink "/proc/$one/exe")
      "${{postgres%/*}}/psql" -XAt -F ' ' -h "/proc/$one/cwd/.." -p "${{socket##*.}}" -U postgres -c "{query}"
    done
  done"""
_ROW = re.compile(r"^benchhub ((?:[0-9]{1,20} ){9}[0-9]{1,20})$", re.ASCII | re.MULTILINE)

_TRANSACTIONS = ChartGroup("postgresql", "PostgreSQL: transactions", 90, sometimes=True)
_HITS = ChartGroup("postgresql_cache", "PostgreSQL: blocks that were found in its memory", 91, sometimes=True)
_BYTES = ChartGroup("postgresql_bytes", "PostgreSQL: what it read and logged", 92, sometimes=True)
_SESSIONS = ChartGroup("postgresql_sessions", "PostgreSQL: sessions at work", 93, sometimes=True)


class PostgreSQLMonitor(Monitor):
    """Rates of all databases of a server of the kind postgresql, added up, and of several instances together."""

    kind = "postgresql"
    cost = "psql with one query, 10 to 20 ms of CPU time, at each reading of a server of the kind postgresql"
    channels = (
        ChannelKind(
            r"postgresql\.(committed|rolled_back)_transactions_per_s",
            "transactions_per_s",
            "{host} PostgreSQL {1}",
            _TRANSACTIONS,
        ),
        ChannelKind(r"postgresql\.cache_hit_ratio", "ratio", "{host} PostgreSQL cache hits", _HITS),
        ChannelKind(r"postgresql\.(read|logged|temporary)_bytes_per_s", "bytes_per_s", "{host} PostgreSQL {1}", _BYTES),
        ChannelKind(
            r"postgresql\.(active|waiting_for_locks|waiting_for_disks)_count",
            "count",
            "{host} PostgreSQL {1}",
            _SESSIONS,
        ),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return _SNIPPET.format(pids=" ".join(map(str, pids)), query=" ".join(_QUERY.split())) if pids else ""

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        """Nothing when the number of servers that answer has changed, or one of them began to count anew."""
        elapsed_s = now.at_s - before.at_s
        old, new = _rows(before.text), _rows(now.text)
        if elapsed_s <= 0 or not new or len(old) != len(new):
            return {}
        moved = [[b - a for a, b in zip(*rows, strict=True)][:6] for rows in zip(old, new, strict=True)]
        if any(min(row) < 0 for row in moved):
            return {}
        committed, rolled_back, read, hit, temporary, logged = (sum(column) for column in zip(*moved, strict=True))
        read_bytes = sum(row[2] * whole[6] for row, whole in zip(moved, new, strict=True))
        rates = {
            "committed_transactions_per_s": committed,
            "rolled_back_transactions_per_s": rolled_back,
            "read_bytes_per_s": read_bytes,
            "logged_bytes_per_s": logged,
            "temporary_bytes_per_s": temporary,
        }
        out = {Channel(f"postgresql.{name}", _unit(name)): value / elapsed_s for name, value in rates.items()}
        if read + hit:
            out[Channel("postgresql.cache_hit_ratio", "ratio")] = hit / (read + hit)
        for place, name in enumerate(("active", "waiting_for_locks", "waiting_for_disks"), start=7):
            out[Channel(f"postgresql.{name}_count", "count")] = float(sum(row[place] for row in new))
        return out


def _unit(name: str) -> str:
    return "bytes_per_s" if name.endswith("bytes_per_s") else "transactions_per_s"


def _rows(text: str) -> list[list[int]]:
    return [[int(number) for number in row[1].split()] for row in _ROW.finditer(text)]
