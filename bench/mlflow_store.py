"""Fills MLflow's tables with runs by SQL: its API would take hours for 100,000 of them."""

from __future__ import annotations

from typing import Any

import psycopg

METRICS, PARAMETERS = 8, 5
"""As many figures as the runs that `manage.py seed_runs` makes up."""
OTHER_COLUMNS = 6 + 3 + PARAMETERS
"""What a frame of MLflow has beside figures: of the run itself, tags and parameters."""

_STATEMENTS = (
    """INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time,
        end_time, source_version, lifecycle_stage, artifact_uri, experiment_id)
    SELECT md5(%(experiment)s::text || '-' || n), 'run ' || n, 'LOCAL', '', '', 'bench', 'FINISHED', n, n + 60000, '',
        'active', '/nowhere', %(experiment)s FROM generate_series(1, %(count)s) AS n""",
    """INSERT INTO tags (key, value, run_uuid)
    SELECT key, CASE key WHEN 'branch' THEN CASE WHEN n %% 5 = 0 THEN 'feature-' || n %% 40 ELSE 'main' END
        ELSE key || n / 6 END, md5(%(experiment)s::text || '-' || n)
    FROM generate_series(1, %(count)s) AS n, unnest(ARRAY['branch', 'commit', 'build']) AS key""",
    """INSERT INTO params (key, value, run_uuid)
    SELECT 'key.' || k, 'value ' || (n + k) %% 50, md5(%(experiment)s::text || '-' || n)
    FROM generate_series(1, %(count)s) AS n, generate_series(1, %(parameters)s) AS k""",
    """INSERT INTO metrics (key, value, timestamp, step, is_nan, run_uuid)
    SELECT CASE k WHEN 1 THEN 'throughput_rps' ELSE 'own_' || k || '_ms' END, 5000 + (n * 7919 * k) %% 10007, n, 0,
        false, md5(%(experiment)s::text || '-' || n)
    FROM generate_series(1::bigint, %(count)s) AS n, generate_series(1, %(metrics)s) AS k""",
    """INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid)
    SELECT CASE k WHEN 1 THEN 'throughput_rps' ELSE 'own_' || k || '_ms' END, 5000 + (n * 7919 * k) %% 10007, n, 0,
        false, md5(%(experiment)s::text || '-' || n)
    FROM generate_series(1::bigint, %(count)s) AS n, generate_series(1, %(metrics)s) AS k""",
)


def seed_mlflow(connection: psycopg.Connection[Any], experiment: int, count: int, *, metrics: int = METRICS) -> None:
    """Store `count` finished runs, four fifths of them of the branch main, each with its latest metrics."""
    for statement in _STATEMENTS:
        given = {"experiment": experiment, "count": count, "parameters": PARAMETERS, "metrics": metrics}
        connection.execute(statement, given)
