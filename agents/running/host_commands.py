"""What a person types on a host of their own to make it ready: page, guide and findings share these lines."""

from __future__ import annotations

import shlex

from agents.base.readable import open_up
from agents.steps import STEPS

RULE_FILE = "/etc/sudoers.d/benchhub"
APPEND_KEY = "umask 077; mkdir -p ~/.ssh; cat >> ~/.ssh/authorized_keys"
JAVA = "sudo apt-get install -y default-jdk-headless"
LOAD_TOOL = "sudo apt-get install -y wrk curl"
SUDO = "apt-get install -y sudo"
FIREWALL = "sudo ufw allow from DRIVER to any port 8080 proto tcp"
"""DRIVER: the address of the driver host, as the SUT sees it."""
TOMCAT = (
    "sudo mkdir -p /opt/tomcat && sudo tar -xzf apache-tomcat-VERSION.tar.gz -C /opt/tomcat --strip-components=1 && "
    + open_up("/opt/tomcat")
)
"""Unpacks a download so that every login may read it: the archive itself lets only its owner."""


def account(user: str) -> str:
    """Makes the login, where there is none."""
    return f"getent passwd {user} || sudo useradd --create-home --shell /bin/bash {user}"


def add_key(user: str, public_key: str) -> str:
    """Puts BenchHub's public key on the host, for somebody who may use sudo there."""
    return f"echo {shlex.quote(public_key)} | sudo -u {user} -H sh -c {shlex.quote(APPEND_KEY)}"


def sudo_rule(user: str) -> str:
    """The line of sudoers that lets the login act as root. One that names programs would allow as much.

    What BenchHub does as root are scripts that it sends: `sudo -n -- timeout ... sh -c ...`.
    """
    return f"{user} ALL=(root) NOPASSWD: ALL"


def allow_sudo(user: str) -> str:
    """Puts that line in place, and has sudo check it."""
    line = shlex.quote(sudo_rule(user))
    return f"echo {line} | sudo tee {RULE_FILE} && sudo chmod 440 {RULE_FILE} && sudo visudo -c"


def linger(user: str) -> str:
    """Lets processes of the login have scopes of their own while nobody is logged in."""
    return f"sudo loginctl enable-linger {user}"


def steps_by_root() -> dict[str, tuple[str, ...]]:
    """When steps of recipes need root ("always", "never", or when) -> the kinds of steps."""
    found: dict[str, tuple[str, ...]] = {}
    for kind, step in sorted(STEPS.items()):
        found[step.root] = (*found.get(step.root, ()), kind)
    return found
