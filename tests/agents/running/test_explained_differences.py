"""Which differences the recipes explain."""

from __future__ import annotations

from typing import Any

import pytest

from agents.running.explained_differences import explained_by
from agents.spec import RunSpec
from tests.agents.specs import address, make_spec

SWAPPINESS = {"kind": "sysctl", "values": {"vm.swappiness": "10"}}
THREADS = "tomcat.server_xml.Server/Service/Connector[@port='8080']@maxThreads"


def connector(threads: int, **more: Any) -> dict[str, Any]:
    edit = {"op": "set", "select": "Service/Connector", "attributes": {"maxThreads": threads, **more}}
    return {"kind": "xml_edit", "path": "conf/server.xml", "edits": [edit]}


def options(*given: str) -> dict[str, Any]:
    return {"kind": "jvm_options", "options": list(given)}


def sysctl(**values: Any) -> dict[str, Any]:
    return {"kind": "sysctl", "values": {f"vm.{name}": value for name, value in values.items()}}


def file(content: str, path: str = "nginx.conf") -> dict[str, Any]:
    return {"kind": "file", "path": path, "content": content}


def command(*sets: str) -> dict[str, Any]:
    return {"kind": "command", "run": ":", "undo": ":", "sets": sets}


ACCEPT = THREADS.replace("maxThreads", "acceptCount")
HEAP = "jvm.flags.MaxHeapSize"


@pytest.mark.parametrize(
    "recipes, path, asked",
    [
        (((), (SWAPPINESS,)), "sysctl.vm.swappiness", True),
        (((), (SWAPPINESS,)), "sysctl.vm.dirty_ratio", False),
        (((SWAPPINESS,), (SWAPPINESS,)), "sysctl.vm.swappiness", False),
        (((SWAPPINESS,), (SWAPPINESS, connector(8))), "sysctl.vm.swappiness", False),
        (((SWAPPINESS,), (SWAPPINESS, connector(8))), THREADS, True),
        (((connector(8),), (connector(400),)), THREADS, True),
        (((connector(8),), (connector(400),)), THREADS.replace("maxThreads", "acceptCount"), False),
        (((connector(8, acceptCount=9),), (connector(400, acceptCount=9),)), ACCEPT, False),
        (((connector(8, acceptCount=9),), (connector(400, acceptCount=9),)), THREADS, True),
        (
            ((sysctl(swappiness=1, laptop_mode=0),), (sysctl(swappiness=1, laptop_mode=5),)),
            "sysctl.vm.swappiness",
            False,
        ),
        (((options("-Xmx1g"),), (options("-Xmx1g", "-Da=b"),)), HEAP, False),
        (((options("-Xmx1g"),), (options("-Xmx1g", "-Da=b"),)), "jvm.arguments.jvm_options[1]", True),
        (((options("-Xmx1g"),), (options("-Xmx2g"),)), HEAP, True),
        (((options("-Xmx1g", "-Xmx2g"),), (options("-Xmx2g", "-Xmx1g"),)), HEAP, True),
        (((), ({"kind": "limits", "nofile": 4096},)), "process.limits.nofile", True),
        (
            (({"kind": "limits", "nofile": 64, "nproc": 64},), ({"kind": "limits", "nofile": 64, "nproc": 65},)),
            "process.limits.nofile",
            False,
        ),
        (((), ({"kind": "affinity", "cpus": "1"},)), "process.cpus", True),
        (((), ({"kind": "environment", "variables": {"LANG": "C"}},)), "process.environment.LANG", True),
        (((file("worker_processes 1;"),), (file("worker_processes 4;"),)), "files.nginx.conf@worker_processes", True),
        (((), (file("worker_processes 4;"),)), "files.nginx.conf", True),
        (((file("a b;"),), (file("a c;"),)), "files.other.conf@a", False),
        (((file("a b;"),), (file("a b;"),)), "files.nginx.conf@a", False),
        (((), (connector(8),)), "files.conf/server.xml@line[3]", True),
        (((), (command("sysctl.net.*"),)), "sysctl.net.core.somaxconn", True),
        (((), (command("sysctl.net.*"),)), "sysctl.vm.swappiness", False),
        (((), (command("files.app.conf"),)), "files.app.conf@http.workers", True),
        (((), (command(),)), "sysctl.vm.swappiness", False),
        (((command("sysctl.*"),), (command("sysctl.*"),)), "sysctl.vm.swappiness", False),
        (((), (), (SWAPPINESS,)), "sysctl.vm.swappiness", True),
        ((), "sysctl.vm.swappiness", False),
    ],
)
def test_a_difference_is_asked_when_the_recipes_differ_in_it(
    recipes: tuple[tuple[dict[str, Any], ...], ...], path: str, asked: bool
) -> None:
    assert explained_by([make_spec(steps=steps) for steps in recipes])(path) is asked


@pytest.mark.parametrize(
    "path, asked",
    [("process.arguments[3]", True), ("jvm.version", True), ("files.a.conf@b", True), ("sysctl.a.b", False)],
)
def test_other_servers_explain_what_belongs_to_the_server(path: str, asked: bool) -> None:
    specs = [make_spec(), make_spec(server={"cpus": "1"})]
    assert explained_by(specs)(path) is asked


def test_a_step_on_one_member_explains_nothing_on_another() -> None:
    nap = {"kind": "command", "argv": ["true"], "port": 5432}

    def system(swappiness: str) -> RunSpec:
        steps: tuple[dict[str, Any], ...] = ({"kind": "sysctl", "values": {"vm.swappiness": swappiness}},)
        return make_spec(members={"database": (nap, address("db"), steps)})

    asked = explained_by([system("1"), system("60")])
    assert asked("members.database.sysctl.vm.swappiness")
    assert not asked("sysctl.vm.swappiness")
    assert not asked("members.cache.sysctl.vm.swappiness")
