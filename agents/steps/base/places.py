"""Where on a host a step may write files: a few roots, and within them not what logins, root or the boot depend on."""

from __future__ import annotations

import re

ROOTS: dict[str, str] = {
    "/etc": "configuration of the system and of the servers that the distribution brings",
    "/opt": "servers that are installed beside the distribution",
    "/srv": "what servers serve",
    "/usr/local": "servers that were built on the host, and their etc",
    "/var/lib": "where distributions keep the working directory of a server, its configuration included",
    "/var/opt": "the data of what is in /opt",
    "/home": "servers that run under an account of their own",
    "/data": "a second disk",
    "/mnt": "a second disk",
    "/tmp": "scratch",  # noqa: S108
    "/var/tmp": "scratch",  # noqa: S108
}
"""Root -> why. Not among them: /root (the home of who may do everything), /usr, /bin, /lib and /boot (they belong to
the package manager and the boot), /run (gone at a restart), /proc, /sys and /dev (no files; other steps do that)."""

ALLOWED = ("/etc/security/limits.conf", "/etc/security/limits.d/")
"""Limits of logins are real tuning, though their directory is kept out."""

KEPT_OUT: dict[str, tuple[str, ...]] = {
    "it decides who may log in or become root": (
        "/etc/passwd",
        "/etc/shadow",
        "/etc/group",
        "/etc/gshadow",
        "/etc/subuid",
        "/etc/subgid",
        "/etc/sudo",
        "/etc/doas",
        "/etc/polkit",
        "/etc/ssh",
        "/etc/systemd/system/ssh",
        "/etc/pam",
        "/etc/security/",
        "/etc/login",
        "/etc/shells",
        "/etc/securetty",
        "/etc/nsswitch",
        "/etc/sssd",
        "/etc/krb5",
        "/etc/hosts.allow",
        "/etc/hosts.deny",
        "/etc/selinux",
        "/etc/apparmor",
        "/etc/audit",
        "/etc/ssl",
        "/etc/pki",
        "/etc/ca-certificates",
        "/var/lib/AccountsService",
        "/var/lib/polkit",
        "/var/lib/sudo",
        "/var/lib/sss",
    ),
    "every login or every program reads it": (
        "/etc/ld.",
        "/etc/profile",
        "/etc/bash",
        "/etc/zsh",
        "/etc/csh",
        "/etc/fish",
        "/etc/environment",
        "/etc/skel",
        "/etc/alternatives",
        "/usr/local/bin",
        "/usr/local/sbin",
        "/usr/local/lib",
    ),
    "the host runs what stands in it by itself": (
        "/etc/cron",
        "/etc/anacron",
        "/etc/at.",
        "/etc/init",
        "/etc/rc",
        "/etc/logrotate",
        "/etc/xinetd",
        "/etc/inetd",
        "/etc/update",
        "/etc/dhcp",
        "/etc/ppp",
        "/etc/udev",
        "/etc/acpi",
        "/etc/apm",
        "/etc/binfmt",
        "/etc/tmpfiles",
        "/etc/sysusers",
        "/etc/mod",
        "/etc/dbus",
        "/var/lib/dbus",
        "/var/lib/systemd",
        "/var/lib/cloud",
    ),
    "it belongs to the package manager or to the containers": (
        "/etc/apt",
        "/etc/dpkg",
        "/etc/dnf",
        "/etc/yum",
        "/etc/rpm",
        "/etc/zypp",
        "/var/lib/apt",
        "/var/lib/dpkg",
        "/var/lib/dnf",
        "/var/lib/rpm",
        "/var/lib/yum",
        "/var/lib/docker",
        "/var/lib/containerd",
        "/var/lib/containers",
        "/var/lib/kubelet",
        "/var/lib/etcd",
        "/var/lib/lxc",
        "/var/lib/lxd",
        "/var/lib/libvirt",
    ),
    "the host needs it to start": (
        "/etc/fstab",
        "/etc/crypttab",
        "/etc/default/grub",
        "/etc/grub",
        "/etc/kernel",
        "/etc/dracut",
        "/etc/machine-id",
    ),
    "the host needs it to be reached": (
        "/etc/network",
        "/etc/netplan",
        "/etc/NetworkManager",
        "/etc/sysconfig/network",
        "/etc/systemd/network",
        "/etc/firewalld",
        "/etc/iptables",
        "/etc/nftables",
        "/etc/ufw",
        "/var/lib/NetworkManager",
    ),
}
"""Reason -> beginnings of paths within the roots that no step writes."""

HIDDEN = "hidden files hold keys, logins and what an account starts with"
NO_ROOT = f"it is in none of the places where steps may write ({', '.join(ROOTS)})"

_STATIC = re.compile(
    r"(?:webapps|usr/servers/[A-Za-z0-9_.-]+/(?:dropins|apps))/(?:[^/]+/)+[^/]+\.(?:css|csv|html?|json|md|svg|txt)",
    re.IGNORECASE,
)
_NOT_SERVED = re.compile(r"(?:^|/)(?:WEB-INF|META-INF)(?:/|$)", re.IGNORECASE)
_CONFIGURATION = re.compile(
    r"conf/(?:server|context)\.xml|conf/(?:catalina|logging)\.properties"
    r"|usr/servers/[A-Za-z0-9_.-]+/(?:server\.xml|bootstrap\.properties|configDropins/[a-z]+/[A-Za-z0-9_.-]+\.xml)"
)


def refusal(path: str) -> str | None:
    """Why no step may write the file at this absolute path; None when it may."""
    if "/." in path:
        return HIDDEN
    if path.startswith(ALLOWED):
        return None
    for reason, beginnings in KEPT_OUT.items():
        if path.startswith(beginnings):
            return reason
    return None if any(path.startswith(f"{root}/") for root in ROOTS) else NO_ROOT


def is_static(path: str, mode: str | None = None) -> bool:
    """Whether the file is one that a web application of the instance sends as it is, and nobody reads or runs.

    Outside the instance every file is written as root, and root's services read them; within it servers read their
    configuration, load classes, and run scripts and pages of Java.
    """
    if mode is not None and int(mode, 8) & 0o111:
        return False
    return _STATIC.fullmatch(path) is not None and not _NOT_SERVED.search(path)


def is_configuration(path: str) -> bool:
    """Whether it is a file of the instance in which Tomcat or Liberty have the settings that are tuned."""
    return _CONFIGURATION.fullmatch(path) is not None


def shell_check() -> str:
    """The same rules for the resolved path `$real/$name`, as shell text that calls `refuse REASON`."""
    kept = "\n".join(
        f"  {'|'.join(f'{beginning}*' for beginning in beginnings)}) refuse '{reason}';;"
        for reason, beginnings in KEPT_OUT.items()
    )
    return f"""case $real/$name in
  */.*) refuse '{HIDDEN}';;
  {"|".join(f"{beginning}*" for beginning in ALLOWED)}) ;;
{kept}
  {"|".join(f"{root}/*" for root in ROOTS)}) ;;
  *) refuse '{NO_ROOT}';;
esac"""
