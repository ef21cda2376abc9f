"""The parts of /sys and /proc/sys that belong to the whole machine, as plain files of a host's own.

A host may write to them and sees what it wrote, and the machine is left alone. `react` does what the kernel does beside
that: CPUs that go offline leave the list of online ones, a choice gets its brackets, a value that is none is refused.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

GOVERNORS = ("performance", "powersave", "schedutil")
PAIRS = (
    ("vm/dirty_bytes", "vm/dirty_ratio"),
    ("vm/dirty_background_bytes", "vm/dirty_background_ratio"),
    ("vm/overcommit_kbytes", "vm/overcommit_ratio"),
)
IRQS = (24, 25)
NOT_COPIED = ("net", "kernel/random")
"""Below /proc/sys: `net` is a host's own already, `random` makes what is read."""

_IN_CLOSE_WRITE = 8
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class FakeKernel:
    """The trees of one host below `folder`; `mounts` says where each belongs."""

    def __init__(self, folder: Path, cpus: int) -> None:
        self._cpus = cpus
        self.moved(folder)
        self._reactions: dict[int, Callable[[], None]] = {}
        self._notices = -1

    def moved(self, folder: Path) -> None:
        """The trees are at `folder` from now on."""
        self._cpu, self._thp, self._irq = folder / "cpu", folder / "thp", folder / "irq"
        self._sysctl, self._node = folder / "sysctl", folder / "node"

    def mounts(self) -> Mapping[Path, Path]:
        """Our tree -> the path on the host that it covers."""
        covers = {self._cpu: Path("/sys/devices/system/cpu"), self._irq: Path("/proc/irq")}
        covers |= {tree: Path("/proc/sys") / tree.name for tree in self._sysctl.iterdir()}
        if self._thp.exists():
            covers[self._thp] = Path("/sys/kernel/mm/transparent_hugepage")
        if self._node.exists():
            covers |= {file: Path("/sys/devices/system/node/node0") / file.name for file in self._node.iterdir()}
        return covers

    def build(self) -> None:
        """Writes the trees as after a boot: all CPUs online, everything else as this machine has it now."""
        self._build_cpus()
        _copy(Path("/proc/sys"), self._sysctl, skip=NOT_COPIED)
        if (thp := Path("/sys/kernel/mm/transparent_hugepage")).is_dir():
            _copy(thp, self._thp)
        for irq in IRQS:
            _write(self._irq / str(irq) / "smp_affinity_list", f"0-{self._cpus - 1}")
            _write(self._irq / str(irq) / "smp_affinity", _mask(range(self._cpus)))

    def watch(self) -> int:
        """Starts to notice what is written; returns the file descriptor that has something to read then."""
        self._notices = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        for cpu in range(1, self._cpus):
            self._on(self._cpu / f"cpu{cpu}/online", self._cpu_switched)
        for cpu in range(self._cpus):
            self._among(self._cpu / f"cpu{cpu}/cpufreq/scaling_governor", GOVERNORS)
        for name in ("enabled", "defrag"):
            if (file := self._thp / name).exists():
                self._bracketed(file)
        for first, second in PAIRS:
            for one, other in ((first, second), (second, first)):
                if (self._sysctl / one).exists() and (self._sysctl / other).exists():
                    self._empties(self._sysctl / one, self._sysctl / other)
        return self._notices

    def react(self) -> None:
        """Acts on all that was written since the last call."""
        try:
            data = os.read(self._notices, 1 << 16)
        except BlockingIOError:
            return
        while data:
            watch, _, _, length = _EVENT.unpack_from(data)
            data = data[_EVENT.size + length :]
            if watch in self._reactions:
                self._reactions[watch]()

    def _on(self, file: Path, reaction: Callable[[], None]) -> None:
        watch = _libc.inotify_add_watch(self._notices, os.fsencode(file), _IN_CLOSE_WRITE)
        if watch < 0:
            raise OSError(ctypes.get_errno(), f"{file} cannot be watched")
        self._reactions[watch] = reaction

    def _among(self, file: Path, choices: tuple[str, ...]) -> None:
        valid = [file.read_text()]

        def reaction() -> None:
            if (now := file.read_text()) != valid[0]:
                if now.strip() in choices:
                    valid[0] = now
                else:
                    file.write_text(valid[0])

        self._on(file, reaction)

    def _bracketed(self, file: Path) -> None:
        shown = [file.read_text()]
        words = [word.strip("[]") for word in shown[0].split()]

        def reaction() -> None:
            if (now := file.read_text()) != shown[0]:
                if (chosen := now.strip()) in words:
                    shown[0] = " ".join(f"[{word}]" if word == chosen else word for word in words) + "\n"
                file.write_text(shown[0])

        self._on(file, reaction)

    def _empties(self, file: Path, other: Path) -> None:
        def reaction() -> None:
            if file.read_text().strip() != "0" and other.read_text().strip() != "0":
                other.write_text("0\n")

        self._on(file, reaction)

    def _cpu_switched(self) -> None:
        switched = {cpu: self._cpu / f"cpu{cpu}/online" for cpu in range(1, self._cpus)}
        online = [0, *(cpu for cpu, file in switched.items() if file.read_text().strip() == "1")]
        _write(self._cpu / "online", _list(online))
        _write(self._cpu / "offline", _list([cpu for cpu in range(self._cpus) if cpu not in online]))

    def _build_cpus(self) -> None:
        real, everyone = Path("/sys/devices/system/cpu"), range(self._cpus)
        for name in ("possible", "present", "online"):
            _write(self._cpu / name, _list(everyone))
        _write(self._cpu / "offline", "")
        _write(self._cpu / "kernel_max", str(max(255, self._cpus - 1)))
        for name in ("vulnerabilities", "smt"):
            if (real / name).is_dir():
                _copy(real / name, self._cpu / name)
        for cpu in everyone:
            place = self._cpu / f"cpu{cpu}"
            if cpu:
                _write(place / "online", "1")
            for name in ("topology", "cache"):
                if (real / "cpu0" / name).is_dir():
                    _copy(real / "cpu0" / name, place / name)
            for file in (place / "topology").glob("*") if (place / "topology").is_dir() else ():
                self._place_cpu(file, cpu)
            for index in (place / "cache").glob("index*"):
                shared = everyone if (index / "level").read_text().strip() == "3" else [cpu]
                _write(index / "shared_cpu_list", _list(shared))
                _write(index / "shared_cpu_map", _mask(shared))
                _write(index / "id", "0" if len(shared) > 1 else str(cpu))
            _write(place / "cpufreq/scaling_governor", GOVERNORS[-1])
            _write(place / "cpufreq/scaling_available_governors", " ".join(GOVERNORS))
            _write(place / "cpufreq/scaling_driver", "benchhub-lab")
        if Path("/sys/devices/system/node/node0").is_dir():
            _write(self._node / "cpulist", _list(everyone))
            _write(self._node / "cpumap", _mask(everyone))

    def _place_cpu(self, file: Path, cpu: int) -> None:
        """Every CPU is a core of its own, all of them are in one socket."""
        whole = file.name.partition("_")[0] in ("package", "die") or file.name.startswith("core_siblings")
        cpus = range(self._cpus) if whole else [cpu]
        if file.name.endswith("_list"):
            _write(file, _list(cpus))
        elif file.name.endswith(("_cpus", "_siblings")):
            _write(file, _mask(cpus))
        elif file.name in ("core_id", "cluster_id"):
            _write(file, str(cpu))


def _copy(source: Path, target: Path, *, skip: tuple[str, ...] = ()) -> None:
    """The files of a tree of the kernel with their modes; one that cannot be read is empty in the copy."""
    for place, folders, files in os.walk(source):
        below = Path(place).relative_to(source)
        folders[:] = [name for name in folders if str(below / name) not in skip]
        (target / below).mkdir(parents=True, exist_ok=True)
        for name in files:
            file, copy = Path(place) / name, target / below / name
            try:
                copy.write_bytes(file.read_bytes())
            except OSError:
                copy.touch()
            shutil.copymode(file, copy)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def _list(cpus: range | list[int]) -> str:
    """As the kernel writes it: 0-3,5."""
    parts: list[list[int]] = []
    for cpu in cpus:
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _mask(cpus: range | list[int]) -> str:
    """Bits in hexadecimal, 32 to a group."""
    bits = sum(1 << cpu for cpu in cpus)
    groups = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(bits.bit_length(), 1), 32)]
    return ",".join(reversed(groups))
