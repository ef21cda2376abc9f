"""Kinds of hosts that users have: how a host of the lab becomes one, and what BenchHub makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.lab import LabHost

USER = "kind"
DROPBEAR_PORT = 2222
ROOT = "/srv/small"
"""The file system of a host that has busybox only."""
APPLETS = (
    "sh ash cat chmod chown cp cut date dd df echo env expr false find grep head hostname id kill ln ls mkdir mkfifo "
    "mktemp mv nproc od printf ps pwd readlink rm rmdir sed seq setsid sha256sum sleep sort stat sync sysctl tail "
    "taskset tee test timeout top touch tr true uname uniq uptime wc wget which xargs base64 httpd [ basename dirname"
)


@dataclass(frozen=True)
class HostKind:
    """`make` turns a host into one of this kind and `unmake` back; `programs` must be on this machine for it.

    `refused` are words of what the test of a connection says; "" where runs take place. `noise`: what logins of this
    host print of their own.
    """

    name: str
    make: Callable[[LabHost], None]
    programs: tuple[str, ...] = ()
    refused: str = ""
    mended_by: str = ""
    user: str = USER
    port: int = 22
    unmake: Callable[[LabHost], None] = lambda host: None


def _sh(host: LabHost, text: str, *args: str) -> None:
    host.exec("sh", "-ec", text, "sh", *args)


def _login(shell: str, files: dict[str, str] | None = None) -> Callable[[LabHost], None]:
    """An account with this shell and these files in its home directory."""

    def make(host: LabHost) -> None:
        _sh(host, 'userdel -rf "$1" 2>/dev/null || :; useradd -m -p "*" -s "$2" "$1"', USER, shell)
        for name, text in (files or {}).items():
            put = 'file=$(getent passwd "$1" | cut -d: -f6)/$2; mkdir -p "${file%/*}"; printf %s "$3" >"$file"'
            _sh(host, put, USER, name, text)
        _sh(host, 'chown -R "$1": "$(getent passwd "$1" | cut -d: -f6)"', USER)

    return make


def _with_home(change: str) -> Callable[[LabHost], None]:
    def make(host: LabHost) -> None:
        _login("/bin/bash")(host)
        _sh(host, change, USER)

    return make


def _no_client(host: LabHost) -> None:
    _login("/bin/bash")(host)
    _sh(host, "for program in curl wget; do mv /usr/bin/$program /root/$program.aside || :; done 2>/dev/null")


def _client(host: LabHost) -> None:
    _sh(host, "for program in curl wget; do mv /root/$program.aside /usr/bin/$program || :; done 2>/dev/null")


def _ash(host: LabHost) -> None:
    _sh(host, 'ln -sf "$(command -v busybox)" /usr/local/bin/ash')
    _login("/usr/local/bin/ash")(host)


def _without(program: str, shell: str = "/bin/bash") -> tuple[Callable[[LabHost], None], Callable[[LabHost], None]]:
    """A host on which this program of /usr/bin is not installed."""

    def make(host: LabHost) -> None:
        _login(shell)(host)
        _sh(host, 'mv "/usr/bin/$1" "/root/$1.aside"', program)

    def unmake(host: LabHost) -> None:
        _sh(host, 'mv "/root/$1.aside" "/usr/bin/$1"', program)

    return make, unmake


_DROPBEAR = """
[ -e /root/dropbear_key ] || dropbearkey -t ed25519 -f /root/dropbear_key >/dev/null
mkdir -p /root/.ssh && cp /etc/ssh/lab/authorized_keys /root/.ssh/authorized_keys && chmod 700 /root /root/.ssh
setsid dropbear -r /root/dropbear_key -p "$1" -P /run/dropbear.pid -s </dev/null >/dev/null 2>&1
"""
_NO_DROPBEAR = 'kill "$(cat /run/dropbear.pid)"; rm -rf /root/.ssh'

# A root of its own with nothing in it but busybox, dropbear and what the latter is linked to, and `$2`, each with its
# libraries.
_SMALL = """
root=$1 port=$2 applets=$3
shift 3
mkdir -p "$root" && mount --bind "$root" "$root"
mkdir -p "$root/bin" "$root/etc" "$root/root/.ssh" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in $applets; do ln -sf busybox "$root/bin/$applet"; done
for program in dropbear "$@"; do
  path=$(command -v "$program")
  rm -f "$root/bin/$program" && cp "$path" "$root/bin/$program"
  for library in $(ldd "$path" | grep -o '/[^ ]*'); do
    mkdir -p "$root${library%/*}" && cp -L "$library" "$root$library"
  done
done
echo 'root::0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo /bin/sh >"$root/etc/shells"
printf 'ID=alpine\\nNAME="Alpine Linux"\\n' >"$root/etc/os-release"
cp /etc/ssh/lab/authorized_keys "$root/root/.ssh/authorized_keys"
chmod 700 "$root/root" "$root/root/.ssh"
[ -e /root/dropbear_key ] || dropbearkey -t ed25519 -f /root/dropbear_key >/dev/null
cp /root/dropbear_key "$root/etc/dropbear_key"
for tree in proc sys dev; do mount --rbind "/$tree" "$root/$tree"; done
setsid chroot "$root" /bin/dropbear -r /etc/dropbear_key -p "$port" -P /run/dropbear.pid -s </dev/null >/dev/null 2>&1
"""
_NO_SMALL = """
kill "$(cat "$1/run/dropbear.pid")"
for tree in proc sys dev; do umount -lR "$1/$tree"; done
umount -l "$1"
rm -rf "$1"
"""


def _small(*more: str) -> tuple[Callable[[LabHost], None], Callable[[LabHost], None]]:
    def make(host: LabHost) -> None:
        _sh(host, _SMALL, ROOT, str(DROPBEAR_PORT), APPLETS, *more)

    return make, lambda host: _sh(host, _NO_SMALL, ROOT)


_TALK = "echo 'Welcome to the machine!'; echo 'mind the gap' >&2; printf 'no newline'\n"
_FISH = "echo 'Welcome to fish'\necho gap >&2\nprintf nonl\n"
_CSH = "echo 'Welcome to csh'\n"
_TALKATIVE = _login("/bin/bash", {".bashrc": _TALK, ".profile": _TALK})


def _kind(
    name: str, made: tuple[Callable[[LabHost], None], Callable[[LabHost], None]], refused: str = "", mended_by: str = ""
) -> HostKind:
    return HostKind(name, made[0], refused=refused, mended_by=mended_by, unmake=made[1])


HAS = "lacks what a run needs: "
KINDS = (
    HostKind("OpenSSH, bash that prints", _TALKATIVE),
    HostKind(
        "OpenSSH, bash that starts something in the background", _login("/bin/bash", {".bashrc": "sleep 120 &\n"})
    ),
    HostKind("OpenSSH, dash", _login("/bin/dash")),
    HostKind("OpenSSH, zsh that prints", _login("/bin/zsh", {".zshenv": _TALK}), ("zsh",)),
    HostKind("OpenSSH, fish that prints", _login("/usr/bin/fish", {".config/fish/config.fish": _FISH}), ("fish",)),
    HostKind("OpenSSH, tcsh that prints", _login("/bin/tcsh", {".tcshrc": _CSH, ".cshrc": _CSH}), ("tcsh",)),
    HostKind("OpenSSH, csh of BSD that prints", _login("/bin/bsd-csh", {".cshrc": _CSH}), ("bsd-csh",)),
    HostKind("OpenSSH, busybox ash", _ash, ("busybox",)),
    HostKind(
        "OpenSSH, a start-up file that ends the session",
        _login("/bin/bash", {".bashrc": "echo 'Use the other machine.'; exit 0\n"}),
        refused="ended with status 0 before it ran a command, and said: Use the other machine.",
        mended_by="a start-up file of it (.bashrc",
    ),
    HostKind(
        "OpenSSH, a login without a shell",
        _login("/usr/sbin/nologin"),
        refused="before it ran a command, and said: This account is currently not available.",
        mended_by="a login with a plain shell",
    ),
    HostKind(
        "OpenSSH, no home directory",
        _with_home('rm -rf "/home/$1"'),
        refused=f"has no directory /home/{USER} for {USER}.",
        mended_by="Make it: ",
    ),
    HostKind(
        "OpenSSH, a home directory of somebody else",
        _with_home('chown -R root: "/home/$1"'),
        refused=f"does not let {USER} write to its home directory /home/{USER}",
        mended_by=f"chown {USER} /home/{USER}",
    ),
    _kind("OpenSSH, no curl", _without("curl")),
    _kind("OpenSSH, neither curl nor wget", (_no_client, _client), f"{HAS}curl or wget", "apt-get install curl"),
    _kind("OpenSSH, no prlimit", _without("prlimit")),
    _kind("OpenSSH, no lscpu", _without("lscpu")),
    _kind("OpenSSH, no flock", _without("flock"), f"{HAS}flock", "apt-get install util-linux"),
    _kind("OpenSSH, no setsid", _without("setsid"), f"{HAS}setsid", "apt-get install util-linux"),
    _kind("OpenSSH, no timeout", _without("timeout"), f"{HAS}timeout", "apt-get install coreutils"),
    HostKind(
        "dropbear with an ed25519 key only",
        lambda host: _sh(host, _DROPBEAR, str(DROPBEAR_PORT)),
        ("dropbear",),
        user="root",
        port=DROPBEAR_PORT,
        unmake=lambda host: _sh(host, _NO_DROPBEAR),
    ),
    HostKind(
        "dropbear and busybox, nothing else",
        _small()[0],
        ("dropbear", "busybox"),
        refused=f"{HAS}flock",
        mended_by="apk add util-linux",
        user="root",
        port=DROPBEAR_PORT,
        unmake=_small()[1],
    ),
    HostKind(
        "dropbear, busybox and flock",
        _small("flock")[0],
        ("dropbear", "busybox"),
        user="root",
        port=DROPBEAR_PORT,
        unmake=_small()[1],
    ),
)
