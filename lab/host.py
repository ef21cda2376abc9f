"""One host of a lab: its disk, its init, and what can be done to it from outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import host_sshd, processes
from lab.init import PLAIN_USER, Plan
from lab.openssh import make_key, sshd_program
from lab.processes import HostProcess, ProcessId
from lab.shell import TIMEOUT_S, LabError, run

BOOT_S = 120.0
PROJECT = Path(__file__).resolve().parent.parent
_START = f"import sys; sys.path.insert(0, {str(PROJECT)!r}); from lab.init import main; main()"
_NAMESPACES = ("--pid", "--mount", "--uts", "--ipc")
_INSIDE = ("-m", "-u", "-i", "-n", "-p", "-r", "-w")


@dataclass(frozen=True)
class LabHost:
    """Where a host answers and how to log in: as root, or as `plain_user` with sudo where the machine has it."""

    name: str
    address: str
    data_address: str
    folder: Path
    namespace: str
    port: int = 22
    user: str = "root"
    plain_user: str = PLAIN_USER

    @property
    def host_key(self) -> str:
        """The public host key as it is pinned: "ssh-ed25519 AAAA..."."""
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    @property
    def private_key_file(self) -> Path:
        return self.folder.parent / "client_key"

    @property
    def private_key(self) -> str:
        """What opens both accounts, as OpenSSH text."""
        return self.private_key_file.read_text()

    @property
    def disk(self) -> Path:
        """The host's own file system, of limited size; it stays over a crash and goes with the lab."""
        return self.folder / "disk"

    @property
    def home(self) -> Path:
        """root's home directory as this machine sees it, also while the host is off."""
        return self.disk / "fs" / "root"

    @property
    def root(self) -> Path:
        """The host's whole file system as this machine sees it; only /proc/sys/net is the reader's own there.

        LabError while the host is off.
        """
        return Path(f"/proc/{self.init_or_error.pid}/root")

    @property
    def init(self) -> ProcessId | None:
        """The host's first process, None while the host is off."""
        try:
            process = ProcessId(*map(int, (self.folder / "init").read_text().split()))
        except (FileNotFoundError, ValueError):
            return None
        return process if process.alive else None

    @property
    def init_or_error(self) -> ProcessId:
        if (init := self.init) is None:
            raise LabError(f"{self.name} is off; boot it first.")
        return init

    @property
    def boot_id(self) -> str:
        return (self.root / "run/lab/boot_id").read_text().strip()

    def processes(self) -> tuple[HostProcess, ...]:
        """What runs on the host, its init and its sshd left out."""
        if (init := self.init) is None:
            return ()
        with contextlib.suppress(FileNotFoundError):  # the host went off this moment
            inode = os.stat(f"/proc/{init.pid}/ns/pid").st_ino
            everything = processes.in_namespace("pid", inode)
            return tuple(p for p in everything if p.pid != init.pid and not p.name.startswith("sshd"))
        return ()

    def exec(
        self, *argv: str, stdin: bytes = b"", timeout_s: float = TIMEOUT_S, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command inside, as root and without SSH: it works while the link is cut.

        LabError with its words when it fails, unless `check` is off.
        """
        done = subprocess.run(
            self.inside(argv), input=stdin, capture_output=True, timeout=timeout_s, check=False, env={}
        )
        if check and done.returncode:
            said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            raise LabError(f"{' '.join(argv)} on {self.name} failed with {done.returncode}: {' '.join(said[-3:])}")
        return done

    def inside(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The command line that runs `argv` inside."""
        words = ("env", "-i", "HOME=/root", f"TERM={os.environ.get('TERM', 'dumb')}", f"PATH={host_sshd.PATH}")
        return ("/usr/bin/nsenter", "-t", str(self.init_or_error.pid), *_INSIDE, *words, *argv)

    # Its life, driven by the lab.

    def make(self, disk_bytes: int) -> None:
        """The host's key and its disk, where they are not there yet."""
        self.disk.mkdir(parents=True, exist_ok=True)
        make_key(self.folder / "host_key", f"lab {self.name}")
        if not self.disk.is_mount():
            run(("mount", "-t", "tmpfs", "-o", f"size={disk_bytes},mode=755", "benchhub-lab", str(self.disk)))
        secrets = self.disk / "over/etc/ssh/lab"
        if not secrets.exists():
            secrets.mkdir(parents=True)
            shutil.copy(self.folder / "host_key", secrets / "host_key")
            shutil.copy(self.private_key_file.with_suffix(".pub"), secrets / "authorized_keys")
            (secrets / "sshd_config").write_text(host_sshd.config())
            (self.disk / "over/etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")  # else it would be a copy's

    def start_init(self, *, hosts_file: str, cpus: int) -> None:
        """Switch the host on; `wait_until_up` says when it is."""
        (self.folder / "init").unlink(missing_ok=True)
        plan = Plan(self.name, hosts_file, cpus, host_sshd.start_command(sshd_program()))
        (self.folder / "plan").write_text(json.dumps(asdict(plan)))
        python = (sys.executable, "-I", "-S", "-c", _START, str(self.folder))
        enter = ("ip", "netns", "exec", self.namespace, "unshare", *_NAMESPACES, "--fork", "--kill-child")
        with (self.folder / "init.log").open("wb") as log:
            # The middle process ends at once, so that the host is nobody's child and leaves no zombie behind.
            run_in_background = ("setsid", "--fork", *enter, *python)
            subprocess.run(run_in_background, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True, cwd="/")

    def wait_until_up(self) -> None:
        """Until sshd answers. LabError with the init's own words when it does not come up."""
        end_s = time.monotonic() + BOOT_S
        while time.monotonic() < end_s:
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), timeout=1) as probe:
                if probe.recv(4) == b"SSH-":
                    return
            if (self.folder / "init").exists() and self.init is None:
                break
            time.sleep(0.02)
        said = (self.folder / "init.log").read_text(errors="replace").strip().splitlines()
        raise LabError(f"{self.name} does not come up: {said[-1] if said else 'its sshd does not answer'}")

    def kill(self) -> None:
        """Ends every process of the host at once."""
        if (init := self.init) is not None:
            init.kill()
        (self.folder / "init").unlink(missing_ok=True)

    # Faults inside.

    def fill_disk(self, path: str = "/root/.filler", *, leave_bytes: int = 0) -> None:
        """Fill what is free on the host's disk with the file `path`, but for `leave_bytes`."""
        free = os.statvfs(self.disk)
        size_bytes = max(0, free.f_bavail * free.f_frsize - leave_bytes)
        # What does not fit is no failure: it is how the disk gets full to the last byte.
        slack_bytes = 0 if leave_bytes else 1 << 20
        fill = 'fallocate -l "$2" "$1"; head -c "$3" /dev/zero >>"$1"; :'
        self.exec("sh", "-c", fill, "sh", path, str(size_bytes), str(slack_bytes))

    def set_clock(self, offset_s: int) -> None:
        """Put the time that `date` tells ahead by `offset_s`; the machine's clock, file times and /proc stay."""
        self.exec("sh", "-c", 'echo "$1" >/etc/lab-clock', "sh", str(offset_s))

    def configure_sshd(self, extra: str) -> None:
        """Start sshd anew with these lines in its configuration ("MaxSessions 1"); connections that are open stay."""
        self.exec("sh", "-c", f"cat >{host_sshd.FOLDER}/sshd_config", stdin=host_sshd.config(extra).encode())
        self._end_sshd(listeners=True)
        self.start_sshd()

    def start_sshd(self) -> None:
        self.exec(*host_sshd.start_command(sshd_program()))
        self.wait_until_up()

    def kill_sshd(self) -> None:
        """End the sshd that listens, and its connections too; what was started over them goes on."""
        self._end_sshd(listeners=True)
        self.end_connections()

    def end_connections(self) -> None:
        """End the sshd of each connection; the one that listens takes new ones."""
        self._end_sshd(listeners=False)

    def freeze_sshd(self) -> None:
        """Stop sshd and its connections: they stay open and say nothing."""
        self._signal_sshd(signal.SIGSTOP)

    def thaw_sshd(self) -> None:
        self._signal_sshd(signal.SIGCONT)

    def new_host_key(self) -> None:
        """Give sshd another key, as when the host was installed anew; `host_key` stays the one that was pinned."""
        key = self.folder / "other_key"
        for file in (key, key.with_suffix(".pub")):
            file.unlink(missing_ok=True)
        make_key(key, f"another {self.name}")
        self._set_key(key)

    def old_host_key(self) -> None:
        """Give sshd the key back that it had."""
        self._set_key(self.folder / "host_key")

    def refuse_logins(self) -> None:
        """Forget who may log in."""
        self.exec("sh", "-c", f": >{host_sshd.FOLDER}/authorized_keys")

    def accept_logins(self) -> None:
        public = self.private_key_file.with_suffix(".pub").read_bytes()
        self.exec("sh", "-c", f"cat >{host_sshd.FOLDER}/authorized_keys", stdin=public)

    def sshd_processes(self) -> tuple[HostProcess, ...]:
        """The sshd that listens and the ones of its connections."""
        inode = os.stat(f"/proc/{self.init_or_error.pid}/ns/pid").st_ino
        return tuple(p for p in processes.in_namespace("pid", inode) if p.name.startswith("sshd"))

    def _end_sshd(self, *, listeners: bool) -> None:
        for process in self.sshd_processes():
            if listeners == any("[listener]" in word for word in process.argv):
                ProcessId(process.pid, processes.start_ticks(process.pid) or -1).kill()

    def _signal_sshd(self, number: signal.Signals) -> None:
        for process in self.sshd_processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    def _set_key(self, key: Path) -> None:
        self.exec("sh", "-c", f"cat >{host_sshd.FOLDER}/host_key", stdin=key.read_bytes())
        self._end_sshd(listeners=True)
        self.start_sshd()
