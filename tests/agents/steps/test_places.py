"""Where steps may write, as rules in Python (when a recipe is saved) and in the shell (where links are resolved)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.steps import STEPS
from agents.steps.base.places import KEPT_OUT, ROOTS, is_static, refusal, shell_check
from agents.steps.base.step import StepContext
from agents.steps.file import FileStep
from tests.agents.steps.step_shell import context, state

__all__ = ["context"]

ALLOWED = [
    "/etc/sysctl.d/99-bench.conf",
    "/etc/security/limits.conf",
    "/etc/security/limits.d/bench.conf",
    "/etc/systemd/system/tomcat.service.d/limits.conf",
    "/etc/tomcat10/server.xml",
    "/etc/default/tomcat10",
    "/etc/tuned/bench/tuned.conf",
    "/opt/tomcat/conf/server.xml",
    "/srv/app/app.properties",
    "/usr/local/tomcat/conf/server.xml",
    "/usr/local/etc/app.conf",
    "/var/lib/tomcat10/conf/server.xml",
    "/var/opt/app/a.conf",
    "/home/tomcat/apache/conf/server.xml",
    "/data/app/a.conf",
    "/mnt/app/a.conf",
    "/tmp/a.conf",
    "/var/tmp/a.conf",
]
REFUSED = [
    "/etc/passwd",
    "/etc/passwd-",
    "/etc/shadow",
    "/etc/group",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d/x",
    "/etc/ssh/sshd_config",
    "/etc/systemd/system/sshd.service.d/x.conf",
    "/etc/pam.d/sshd",
    "/etc/security/access.conf",
    "/etc/ld.so.preload",
    "/etc/ld.so.conf.d/x.conf",
    "/etc/cron.d/x",
    "/etc/crontab",
    "/etc/at.allow",
    "/etc/init.d/x",
    "/etc/rc.local",
    "/etc/profile",
    "/etc/profile.d/x.sh",
    "/etc/bash.bashrc",
    "/etc/environment",
    "/etc/fstab",
    "/etc/default/grub",
    "/etc/netplan/01.yaml",
    "/etc/network/interfaces",
    "/etc/systemd/network/10.network",
    "/etc/update-motd.d/00-header",
    "/etc/logrotate.d/x",
    "/etc/udev/rules.d/x.rules",
    "/etc/apt/sources.list",
    "/usr/local/bin/java",
    "/usr/local/lib/libx.so",
    "/var/lib/dpkg/status",
    "/var/lib/docker/x",
    "/root/x",
    "/root/.ssh/authorized_keys",
    "/home/tomcat/.ssh/authorized_keys",
    "/home/tomcat/.bashrc",
    "/home/tomcat/.profile",
    "/home/bench/.benchhub/runs/1/journal/restore.sh",
    "/srv/home/.config/autostart/x",
    "/usr/bin/java",
    "/usr/lib/systemd/system/x.service",
    "/boot/grub/grub.cfg",
    "/bin/sh",
    "/run/x",
    "/dev/shm/x",
    "/proc/sys/vm/swappiness",
    "/sys/kernel/mm/ksm/run",
    "/etcetera",
    "/x",
]


@pytest.mark.parametrize("path", ALLOWED)
def test_configuration_of_servers_and_of_the_kernel_may_be_written(path: str) -> None:
    assert FileStep(path=path, content="x").path == path


@pytest.mark.parametrize("path", REFUSED)
def test_what_logins_root_the_boot_and_the_network_depend_on_is_refused_with_the_reason(path: str) -> None:
    with pytest.raises(ValidationError, match=r"cannot be written by a step: \w+"):
        FileStep(path=path, content="x")


def test_every_rule_is_within_a_root_and_the_shell_says_the_same_as_python() -> None:
    beginnings = [beginning for kept in KEPT_OUT.values() for beginning in kept]
    assert [b for b in beginnings if not b.startswith(tuple(f"{root}/" for root in ROOTS))] == []
    paths = [*ALLOWED, *REFUSED, *beginnings, *(f"{b}x/y" for b in beginnings), *(f"{root}/a/b" for root in ROOTS)]
    each = f"(real=${{path%/*}} name=${{path##*/}}\n{shell_check()}\necho\n)"
    text = f'refuse() {{ echo "$1"; exit; }}\nfor path; do {each}; done'
    done = subprocess.run(["sh", "-c", text, "sh", *paths], capture_output=True, check=True, timeout=300)
    assert done.stdout.decode().splitlines() == [refusal(path) or "" for path in paths]


def test_a_link_to_a_refused_place_is_seen_on_the_host(context: StepContext, tmp_path: Path) -> None:
    (tmp_path / "looks-fine").symlink_to("/etc")
    with pytest.raises(PlanError, match="log in or become root"):
        state(FileStep(path=f"{tmp_path}/looks-fine/passwd", content="x"), context)
    (tmp_path / "programs").symlink_to("/usr")
    with pytest.raises(PlanError, match="none of the places"):
        state(FileStep(path=f"{tmp_path}/programs/x", content="x"), context)


@pytest.mark.parametrize(
    ("path", "mode", "static"),
    [
        ("webapps/ROOT/index.html", None, True),
        ("webapps/ROOT/a/b.json", "0640", True),
        ("usr/servers/defaultServer/dropins/x.war/index.html", None, True),
        ("webapps/ROOT/index.html", "0755", False),
        ("webapps/ROOT/x.jsp", None, False),
        ("webapps/ROOT/WEB-INF/web.xml", None, False),
        ("webapps/ROOT/WEB-INF/x.html", None, False),
        ("webapps/ROOT/web-inf/x.html", None, False),
        ("webapps/ROOT/META-INF/context.xml", None, False),
        ("webapps/ROOT/WEB-INF/lib/x.jar", None, False),
        ("webapps/x.html", None, False),
        ("conf/server.xml", None, False),
        ("conf/catalina.properties", None, False),
        ("conf/x.txt", None, False),
        ("bin/setenv.sh", None, False),
        ("server.env", None, False),
        ("/srv/webapps/x/index.html", None, False),
        ("/etc/sysctl.d/x.conf", None, False),
    ],
)
def test_an_editor_writes_static_pages_only(path: str, mode: str | None, static: bool) -> None:
    assert is_static(path, mode) is static
    assert bool(FileStep(path=path, content="x", mode=mode).reserved()) is not static


def test_commands_builds_packages_and_images_are_not_repeated_after_a_cut() -> None:
    assert {kind for kind, step in STEPS.items() if getattr(step, "once", False)} == {
        "command",
        "build",
        "container_image",
        "packages",
    }
