"""Reads the process environment; a value that cannot be understood stops the start with a plain sentence."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from experiments.registry.naming import SITE_NAME

_PORTS = {"amqp": 5672, "amqps": 5671}
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


def envbool(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    word = value.strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name} must be yes or no, not {value!r}.")


def envint(name: str, default: int) -> int:
    value = os.environ.get(name)
    if value is None or not value.strip():
        return default
    try:
        return int(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from error


def envchoice(name: str, choices: tuple[str, ...]) -> str:
    """One of the words that make sense; the first is the default."""
    value = os.environ.get(name, "").strip() or choices[0]
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be {' or '.join(choices)}, not {value!r}.")
    return value


def envlist(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """The comma-separated parts of a variable, without blanks."""
    value = os.environ.get(name)
    if value is None:
        return list(default)
    return [part.strip() for part in value.split(",") if part.strip()]


def envsite(name: str) -> str:
    """The name of a site; "" = the central one."""
    value = os.environ.get(name, "").strip()
    if value and not SITE_NAME.fullmatch(value):
        raise ImproperlyConfigured(
            f"{name} must be the name of a site: lowercase letters, digits and hyphens, not {value!r}."
        )
    return value


def envnetworks(name: str) -> list[IPv4Network | IPv6Network]:
    """The comma-separated networks of a variable: `10.0.9.0/24,fd00::/8`."""
    try:
        return [ip_network(text) for text in envlist(name)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error


def envpath(name: str) -> Path | None:
    value = os.environ.get(name)
    return Path(value).expanduser().absolute() if value else None


def envsecret(name: str) -> str | None:
    """A secret from NAME, or from the file that NAME_FILE names (as container secrets are mounted)."""
    file_name = os.environ.get(f"{name}_FILE")
    if os.environ.get(name) and file_name:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one.")
    if file_name:
        try:
            return Path(file_name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE cannot be read: {error}.") from error
    return os.environ.get(name) or None


def envurl(name: str) -> str:
    """An address that begins with http:// or https:// and names a host; "" when there is none."""
    value = os.environ.get(name, "").strip()
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is no URL: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"{name} must be a URL such as https://otel.example.com:4318.")
    return value


def envheaders(name: str) -> dict[str, str]:
    """`name=value` pairs with commas between, values as in URLs; a secret, so it may stand in a file."""
    found = {}
    for part in filter(None, (one.strip() for one in (envsecret(name) or "").split(","))):
        key, equals, value = (unquote(one.strip()) for one in part.partition("="))
        if not equals or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", key) or not value.isprintable():
            raise ImproperlyConfigured(f"{name} must be name=value pairs with commas between.")
        found[key] = value
    return found


def own_command(home: Path) -> str:
    """How people call the commands of this installation: what pip has installed, else manage.py in the checkout."""
    if chosen := os.environ.get("BENCHHUB_COMMAND"):
        return chosen
    if is_installed(home):
        program = Path(sys.prefix) / "bin" / "benchhub"
        return "benchhub" if shutil.which("benchhub") == str(program) or not program.exists() else str(program)
    python = Path(sys.prefix) / "bin" / "python"
    return f"{python.relative_to(home) if python.is_relative_to(home) else 'python'} manage.py"


def is_installed(home: Path) -> bool:
    """Whether pip has put BenchHub there; a checkout has the file that says how it is built."""
    return not (home / "pyproject.toml").exists()


def default_data_dir() -> Path:
    """Where the one-machine start keeps everything: a place of the user's own, or /var/lib/benchhub for root.

    Root's home is closed to the account that PostgreSQL has to run as, so root gets a directory outside of it.
    """
    chosen = envpath("BENCHHUB_DATA_DIR")
    if chosen:
        return chosen
    if os.geteuid() == 0:
        return Path("/var/lib/benchhub")
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "benchhub"


def kept_secret(path: Path, make: Callable[[], str]) -> str:
    """The secret kept in a file that only its owner can read; made on first use, the same for concurrent callers."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(make() + "\n")
    try:
        os.link(draft, path)  # never replaces: the first of two concurrent makers wins, both read its secret
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text(encoding="utf-8").strip()


def database_settings(url: str, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Django's settings for a URL such as postgresql://user:password@host:5432/name?sslmode=require.

    `name` is the variable that it comes from. A socket directory goes into the query: postgresql://user@/name?host=/run/postgresql.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(f"{name} must start with postgresql:// (BenchHub needs PostgreSQL).")
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise ImproperlyConfigured(f"{name} must end with the name of the database.")
    try:
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} has a port that is not a number.") from error
    options = dict(parse_qsl(parts.query))
    return {
        "NAME": database,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": str(port or ""),
        "OPTIONS": options,
    }


def network_services(
    databases: Sequence[Mapping[str, Any]], redis_url: str, broker_url: str | None = None
) -> list[tuple[str, int]]:
    """Host and port of the databases, of Redis and of the broker, as far as they are reached over the network."""
    found = [
        (database["HOST"].lower(), int(database["PORT"] or 5432))
        for database in databases
        if database["HOST"] and not database["HOST"].startswith("/")
    ]
    for url in (redis_url, broker_url or ""):
        parts = urlsplit(url)
        if parts.hostname:
            found.append((parts.hostname, parts.port or _PORTS.get(parts.scheme, 6379)))
    return found


def broker_url(url: str) -> str:
    """The same Redis or RabbitMQ in the broker library's spelling, which differs for sockets."""
    parts = urlsplit(url)
    if parts.scheme in {"redis", "rediss", "amqp", "amqps"}:
        return url
    if parts.scheme == "unix":
        number = dict(parse_qsl(parts.query)).get("db", "0")
        return f"redis+socket://{parts.path}?virtual_host={number}"
    raise ImproperlyConfigured(
        "REDIS_URL must start with redis://, rediss:// or unix://, BROKER_URL with one of them, amqp:// or amqps://."
    )
