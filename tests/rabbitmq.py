"""A RabbitMQ of a test's own: one node on the loopback, with everything below one directory."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import amqp  # type: ignore[import-untyped]

from benchhub.processes import end, spawn, wait_until
from tests.agents.run_lab import free_port

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""The distribution's program itself; the one on the PATH changes to an account of the system's node."""
READY_S = 900.0


class RabbitMq:
    """A node that can be killed and started again; what its durable queues hold outlives both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self._distribution_port, self._names_port = free_port(), free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it takes connections."""
        self._process = spawn(
            (str(PROGRAM),), log=self.folder / "rabbitmq.log", environment=self._environment(), directory=self.folder
        )
        if not wait_until(
            lambda: self._process is None or self._process.poll() is not None or self._answers(), seconds=READY_S
        ):
            raise RuntimeError(f"RabbitMQ is not ready after {READY_S:g} s: {self._said()}")
        if self._process.poll() is not None:
            raise RuntimeError(f"RabbitMQ ended at once: {self._said()}")

    def kill(self) -> None:
        """As when its machine loses power."""
        if self._process is not None:
            end(self._process, signal.SIGKILL, patience_s=30)
            self._process = None

    def stop(self) -> None:
        self.kill()
        subprocess.run(
            ("epmd", "-port", str(self._names_port), "-kill"),
            check=False,
            capture_output=True,
            timeout=60,
            env=self._environment(),
        )

    def _answers(self) -> bool:
        try:
            with amqp.Connection(f"127.0.0.1:{self.port}", "guest", "guest", connect_timeout=5, read_timeout=5):
                return True
        except (OSError, amqp.exceptions.AMQPError):
            return False

    def _said(self) -> str:
        return (self.folder / "rabbitmq.log").read_text(errors="replace")[-2000:]

    def _environment(self) -> dict[str, str]:
        plugins = self.folder / "enabled_plugins"
        plugins.write_text("[].\n")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": f"benchhub{self.port}@{socket.gethostname().partition('.')[0]}",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "no-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "no"),
            # One scheduler that does not spin: there are tests beside it.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none",
            "ERL_EPMD_PORT": str(self._names_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
