"""PostgreSQL refuses to run as root: this finds, or makes, the account that it runs as instead."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from benchhub.processes import Account, run_as

ACCOUNT_VARIABLE = "BENCHHUB_SERVICE_ACCOUNT"
DEFAULT_ACCOUNT = "benchhub"


class AccountError(Exception):
    """The account cannot be made or cannot reach the files; the message says what to do."""


def service_account() -> Account | None:
    """The account for embedded PostgreSQL and Redis, or None when we are not root and simply stay who we are.

    As root it is the system account `benchhub` (BENCHHUB_SERVICE_ACCOUNT names another), made on first use
    without home and login.
    """
    if os.geteuid() != 0:
        return None
    name = os.environ.get(ACCOUNT_VARIABLE) or DEFAULT_ACCOUNT
    account = _find(name) or _make(name)
    if account.uid == 0:
        raise AccountError(f"{ACCOUNT_VARIABLE} must not name root: PostgreSQL refuses to run as root.")
    return account


def require_entry(path: Path, account: Account | None) -> None:
    """Checks that the account can enter a directory; parents that belong to others are never opened for it."""
    if account is None or run_as(["test", "-x", str(path)], account).returncode == 0:
        return
    raise AccountError(
        f"PostgreSQL may not run as root, and the account {account.name} cannot enter {path}. "
        "Set BENCHHUB_DATA_DIR to a directory outside of root's home (the default is /var/lib/benchhub), "
        "or start BenchHub as a normal user."
    )


def reachable_binaries(installed: Path, account: Account | None, cache: Path) -> Path:
    """The directory with PostgreSQL's programs, copied into the data directory when the account cannot reach them.

    That is so when root's virtual environment lies in root's home.
    """
    if account is None or _can_execute(installed / "postgres", account):
        return installed
    package = installed.parent.parent
    copy = cache / package.name / installed.relative_to(package)
    if not _can_execute(copy / "postgres", account):
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(parents=True)
        shutil.copytree(installed.parent, copy.parent, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(libraries, cache / libraries.name, symlinks=True)
    if not _can_execute(copy / "postgres", account):
        raise AccountError(f"The account {account.name} cannot run {copy / 'postgres'}; is it on a noexec mount?")
    return copy


def _can_execute(program: Path, account: Account) -> bool:
    try:
        return run_as([str(program), "--version"], account).returncode == 0
    except OSError:
        return False


def _find(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def _make(name: str) -> Account:
    argv = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    argv += ["--shell", "/usr/sbin/nologin", name]
    try:
        result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    except FileNotFoundError as error:
        raise AccountError(
            f"PostgreSQL may not run as root, and useradd is missing: make the system account {name} yourself, "
            "or start BenchHub as a normal user."
        ) from error
    account = _find(name)  # another start may have made it at the same time
    if account is None:
        raise AccountError(f"The system account {name} for PostgreSQL could not be made: {result.stderr.strip()}")
    return account
