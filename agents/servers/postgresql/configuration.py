"""postgresql.conf of an instance: what BenchHub sets, which settings tune only, and what a running server says."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from agents.base.errors import ParseError

SUPERUSER = "postgres"
LOAD = "bench"
"""The account and the database of the load: it owns its tables, and can reach nothing of the host."""

_OWN = """
config_file data_directory external_pid_file hba_file ident_file include include_dir include_if_exists lc_messages
listen_addresses log_destination log_directory log_file_mode log_filename log_line_prefix logging_collector port
unix_socket_directories unix_socket_group unix_socket_permissions
"""
OWN = frozenset(_OWN.split())
"""What BenchHub sets itself, on the command line or in the file."""

HBA = f"""local all {SUPERUSER},{LOAD} trust
host all {LOAD} all trust
"""
"""The socket is in a directory that only the login may enter; from outside there is the account of the load alone."""


def postgresql_conf(port: int, address: str, settings: Mapping[str, str]) -> str:
    """The whole file; what it does not name has PostgreSQL's own default. `address` "" is every one."""
    own = {
        "listen_addresses": address or "*",
        "port": str(port),
        # Relative to the data directory: a socket's path may have 107 letters, which that of a run may exceed.
        "unix_socket_directories": "..",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_line_prefix": "%m [%p] ",
        "lc_messages": "C",
    }
    return "".join(f"{name} = {_quoted(value)}\n" for name, value in {**own, **settings}.items())


def _quoted(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{text}'"


QUERY = """
WITH needing AS (
  SELECT f.name FROM pg_file_settings f JOIN pg_settings s USING (name)
  WHERE f.error = 'setting could not be applied' AND s.context = 'postmaster')
SELECT json_build_object(
  'version', version(),
  'settings', (SELECT json_object_agg(name, current_setting(name, true)) FROM pg_settings),
  'pending', (SELECT json_agg(name) FROM pg_settings WHERE pending_restart OR name IN (SELECT f.name FROM needing f)),
  'refused', (SELECT json_agg(json_build_array(coalesce(name, ''), error)) FROM pg_file_settings
              WHERE error IS NOT NULL AND coalesce(name, '') NOT IN (SELECT f.name FROM needing f)))
"""
"""pg_file_settings reads the files again: what was changed in them since the start and needs another one is named."""


class _Told(BaseModel):
    version: str
    settings: dict[str, str | None]
    pending: list[str] | None = None
    refused: list[tuple[str, str]] | None = None


def parse_postgresql(output: bytes) -> dict[str, str]:
    """The answer of `QUERY`: `postgresql.settings.work_mem`, `postgresql.pending_restart.NAME`, `postgresql.build`.

    What the files ask for and the server does not take is `postgresql.refused.NAME`, with PostgreSQL's words.
    ParseError when it is another text.
    """
    try:
        told = _Told.model_validate_json(output)
    except ValidationError:
        said = output.decode("utf-8", "replace").strip().splitlines()
        raise ParseError(f"PostgreSQL did not tell its settings: {said[-1][:200] if said else 'no answer'}") from None
    return {
        "postgresql.build": told.version,
        **{f"postgresql.settings.{name}": value or "" for name, value in told.settings.items()},
        **{f"postgresql.pending_restart.{name}": "waits for a restart" for name in told.pending or ()},
        **{f"postgresql.refused.{name or 'file'}": error for name, error in told.refused or ()},
    }
