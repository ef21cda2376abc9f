"""redis.conf of an instance: what BenchHub sets, which settings tune only, and what a running server says of itself."""

from __future__ import annotations

from collections.abc import Mapping

from agents.base.errors import ParseError
from agents.servers.redis.protocol import answers, pairs

_OWN = """
aclfile appendonly bind daemonize dir include loadmodule logfile masterauth masteruser pidfile port protected-mode
rename-command replicaof requirepass save slaveof supervised tls-port unixsocket unixsocketperm user
"""
OWN = frozenset(_OWN.split())
"""What BenchHub sets itself, or what would let others in: no setting of an application."""

_BUILD_NAMES = """
arch_bits gcc_version mem_allocator multiplexing_api redis_build_id redis_mode redis_version server_name
valkey_version
"""
_BUILD = frozenset(_BUILD_NAMES.split())
_PERSISTENCE = {
    "none": 'save ""\nappendonly no\n',
    "snapshots": "save 3600 1\nsave 300 100\nsave 60 10000\nappendonly no\n",
    "append_only": 'save ""\nappendonly yes\n',
}


def redis_conf(port: int, address: str, persistence: str, settings: Mapping[str, str]) -> str:
    """Everything but the accounts, which are made on the host. `address` "" is every one."""
    listens = f"bind {address}\n" if address else ""
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    # The accounts protect it, so that it need not refuse whoever comes without a password.
    return f'port {port}\n{listens}protected-mode no\ndaemonize no\nlogfile ""\n{_PERSISTENCE[persistence]}{lines}'


def parse_redis(output: bytes) -> dict[str, str]:
    """`redis.settings.io-threads` from CONFIG GET, `redis.build.mem_allocator` from INFO; no password is among them.

    `output`: what Redis answered to AUTH, CONFIG GET *, INFO server, INFO memory and QUIT. ParseError when it is not.
    """
    said = answers(output)
    if len(said) < 4:
        raise ParseError(f"Redis did not tell its settings: {said[-1]!s:.200}" if said else "Redis did not answer")
    settings = {
        f"redis.settings.{name}": value
        for name, value in pairs(said[1])
        if "pass" not in name and name not in ("masterauth", "masteruser")
    }
    info = [line.partition(":")[::2] for part in said[2:4] for line in str(part).splitlines()]
    return {**settings, **{f"redis.build.{name}": value for name, value in info if name in _BUILD and value}}
