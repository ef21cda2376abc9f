"""The sshd of a lab host: its configuration, and how it is started with less power than the machine's own root."""

from __future__ import annotations

from lab.openssh import KEY_LOGIN_ONLY

FOLDER = "/etc/ssh/lab"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TAKEN_AWAY = ("sys_admin", "sys_module", "sys_rawio", "sys_time", "mknod", "syslog", "mac_admin", "mac_override")
"""What root on a host may not do, since it would reach the machine: mount, load modules, set the clock, open disks."""

_CONFIG = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile /run/sshd.pid
Subsystem sftp internal-sftp
"""


def config(extra: str = "") -> str:
    """sshd_config of a host; lines in `extra` count before ours."""
    return f"{extra}\n{_CONFIG.format(folder=FOLDER)}{KEY_LOGIN_ONLY}"


def start_command(sshd: str) -> tuple[str, ...]:
    """Starts the sshd on a host; it goes into the background when it listens."""
    bounds = ",".join(f"-{name}" for name in TAKEN_AWAY)
    daemon = (sshd, "-f", f"{FOLDER}/sshd_config", "-E", "/var/log/sshd.log")
    return ("env", "-i", f"PATH={PATH}", "setpriv", f"--bounding-set={bounds}", "--", *daemon)
