"""The web server: `python -m benchhub.web --host 0.0.0.0 --port 8000`, with `--workers 2` in two processes."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import tempfile

import uvicorn
from uvicorn.supervisors import Multiprocess

from benchhub.probes import SHARED_COUNTS


def shared_socket(config: uvicorn.Config) -> socket.socket:
    """The socket of several processes, which says that it is TCP; uvicorn's own does not.

    asyncio switches Nagle's algorithm off for sockets of protocol TCP alone: with `uvicorn --workers` the body of each
    answer waits 40 ms for the client to acknowledge its head. A socket that is made from a descriptor asks the kernel.
    """
    return socket.socket(fileno=config.bind_socket().detach())


def main() -> None:
    """Serve until SIGTERM or SIGINT; of several processes, one that dies is replaced."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000)")
    processes = os.environ.get("BENCHHUB_WEB_PROCESSES") or "1"
    said = "processes, each of which uses one core at most (BENCHHUB_WEB_PROCESSES, else 1)"
    parser.add_argument("--workers", type=int, default=processes, help=said)
    given = parser.parse_args()
    if given.workers < 1:
        parser.error("--workers or BENCHHUB_WEB_PROCESSES: at least 1")
    os.environ.setdefault("DATABASE_POOL_SIZE", "10")
    config = uvicorn.Config(
        "benchhub.asgi:application",
        host=given.host,
        port=given.port,
        workers=given.workers,
        lifespan="on",
        access_log=False,
        timeout_graceful_shutdown=5,
        timeout_worker_healthcheck=60,  # a process that is starting on a busy machine is not hung
    )
    if given.workers == 1:
        with contextlib.suppress(KeyboardInterrupt):  # raised again after an orderly end by SIGINT
            uvicorn.Server(config).run()
        return
    with tempfile.TemporaryDirectory(prefix="benchhub-web-") as counts:
        os.environ[SHARED_COUNTS] = counts  # any process tells the figures of all
        Multiprocess(config, sockets=[shared_socket(config)]).run()


if __name__ == "__main__":
    main()
