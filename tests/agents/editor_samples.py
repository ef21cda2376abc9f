"""A part of a document of each kind with something in every field, and texts that do harm where they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.base.rights import Guarded
from agents.drivers import DRIVERS
from agents.servers import SERVERS
from agents.steps import STEPS

_HTTP = {"headers": {"X-A": "b"}}
_BODY = {"method": "POST", "body": "b"}

DRIVER_SAMPLES: Mapping[str, dict[str, Any]] = {
    "ab": {"connections": 1, "content_type": "text/plain", **_HTTP, **_BODY},
    "autocannon": {"connections": 1, **_HTTP, **_BODY},
    "command": {
        "argv": ["true"],
        "scripts": {"a": "b"},
        "figures": {"requests": {"pattern": "(a)"}},
        "version": ["id"],
    },
    "fio": {"block_size": "8k", "size": "1m"},
    "gatling": {"users": 1, **_HTTP, **_BODY},
    "h2load": {"connections": 1, **_HTTP, **_BODY},
    "hey": {"connections": 1, **_HTTP, **_BODY},
    "hyperfoil": {"connections": 1, "threads": 1, **_HTTP},
    "iperf3": {},
    "jmeter": {
        "users": 1,
        "requests": [{"path": "/x", "label": "l", **_HTTP, **_BODY}],
        "properties": {"a": "b"},
        "heap_start": "64m",
    },
    "k6": {"users": 1, **_HTTP, **_BODY},
    "locust": {"users": 1, **_HTTP, **_BODY},
    "memtier": {"connections": 1},
    "oha": {"connections": 1, **_HTTP, **_BODY},
    "pgbench": {"clients": 1, "user": "u", "database": "d", "initialise": True},
    "redis-benchmark": {"clients": 1, "requests": 1},
    "siege": {"connections": 1, **_HTTP, **_BODY},
    "sysbench": {
        "test": "oltp_read_only",
        "memory_block": "2K",
        "file_total": "1G",
        "file_block": "8K",
        "user": "u",
        "database": "d",
        "initialise": True,
    },
    "vegeta": {"offered_rate_rps": 1, **_HTTP, **_BODY},
    "wrk": {"connections": 1, "threads": 1, **_HTTP},
    "wrk2": {"connections": 1, "threads": 1, "offered_rate_rps": 10, **_HTTP},
    "ycsb": {"binding": "jdbc", "user": "u", "database": "d", "initialise": True},
}
_READY = {"path": "/", "body_contains": "a", "log_pattern": "a"}
SERVER_SAMPLES: Mapping[str, dict[str, Any]] = {
    "command": {
        "argv": ["true"],
        "files": {"a": "b"},
        "version": ["id"],
        "ready": {**_READY, "command": ["true"], "command_output": "a"},
        "keep_files": ["logs/*.log"],
    },
    "haproxy": {
        "binary": "haproxy",
        "settings": {"maxconn": "10"},
        "ready": _READY,
        "keep_files": ["logs/*.log"],
    },
    "jar": {
        "jar": "/opt/shop.jar",
        "java_home": "/usr/lib/jvm/java",
        "jvm_options": ["-Xmx64m"],
        "ready": _READY,
        "keep_files": ["logs/*.log"],
    },
    "liberty": {
        "home": "/opt/wlp",
        "java_home": "/usr/lib/jvm/java",
        "apps": {"/a": "/opt/a.war"},
        "dropins": {"a.war/index.html": "b"},
        "bootstrap": {"a": "b"},
        "jvm_options": ["-Xmx64m"],
        "ready": _READY,
        "keep_files": ["logs/*.log"],
    },
    "nginx": {
        "binary": "nginx",
        "settings": {"sendfile": "on"},
        "pages": {"index.html": "a"},
        "ready": _READY,
        "keep_files": ["logs/*.log"],
    },
    "node": {
        "entry": "/opt/shop/server.js",
        "flags": ["--max-old-space-size=64"],
        "ready": _READY,
        "keep_files": ["logs/*.log"],
    },
    "postgresql": {
        "settings": {"work_mem": "4MB"},
        "ready": {"probe": "tcp", "log_pattern": "a"},
        "keep_files": ["logs/*.log"],
    },
    "python": {
        "application": "shop.main:app",
        "directory": "/opt/shop",
        "ready": _READY,
        "keep_files": ["logs/*.log"],
    },
    "redis": {
        "binary": "redis-server",
        "settings": {"hz": "10"},
        "ready": {"probe": "tcp", "log_pattern": "a"},
        "keep_files": ["logs/*.log"],
    },
    "tomcat": {
        "home": "/opt/tomcat",
        "java_home": "/usr/lib/jvm/java",
        "jvm_options": ["-Xmx64m"],
        "ready": _READY,
        "keep_files": ["logs/*.log"],
    },
}
STEP_SAMPLES: Mapping[str, dict[str, Any]] = {
    "affinity": {"cpus": "0"},
    "block_device": {"device": "sda", "scheduler": "none"},
    "build": {
        "repository": "/srv/shop.git",
        "commit": "main",
        "tool": "make",
        "arguments": ["all"],
        "artefact": "out/*",
        "to": "app",
    },
    "cgroup": {"cpus": 1.5},
    "command": {"run": ":", "undo": ":", "observe": ":", "expect": "a", "arguments": ["a"], "sets": ["a.*"]},
    "container_image": {"image": f"nginx@sha256:{'0' * 64}"},
    "cpu_online": {"online": "0"},
    "environment": {"variables": {"TZ": "UTC"}},
    "file": {"path": "webapps/ROOT/a.html", "content": "a", "mode": "0644"},
    "governor": {"governor": "performance", "energy_performance_preference": "performance", "cpus": "0"},
    "irq_affinity": {"cpus": "0", "devices": ["eth0*"]},
    "jvm_options": {"options": ["-Xmx64m"]},
    "kernel_command_line": {"present": ["quiet"], "absent": ["isolcpus"]},
    "limits": {"nofile": 1024},
    "mount": {"path": "/data", "options": ["noatime"]},
    "network_device": {"interface": "eth0", "offloads": {"highdma": True}},
    "numa": {"policy": "bind", "nodes": "0"},
    "packages": {"packages": ["htop"]},
    "properties": {"path": "conf/catalina.properties", "values": {"a": "b"}, "remove": ["c"], "section": "d"},
    "service": {"name": "irqbalance", "running": False},
    "swap": {"enabled": False},
    "sysctl": {"values": {"vm.swappiness": "1"}},
    "thp": {"enabled": "never"},
    "xml_edit": {
        "path": "conf/server.xml",
        "edits": [
            {"op": "set", "select": "Service/Connector", "attributes": {"maxThreads": "1"}},
            {"op": "add", "under": "Service", "tag": "Executor", "attributes": {"name": "a"}},
            {"op": "remove", "select": "Service/Engine/Host/Valve"},
        ],
    },
}
SAMPLES: tuple[tuple[str, Mapping[str, type[Guarded]], Mapping[str, dict[str, Any]]], ...] = (
    ("driver", DRIVERS, DRIVER_SAMPLES),
    ("server", SERVERS, SERVER_SAMPLES),
    ("step", STEPS, STEP_SAMPLES),
)

KEYS = (
    "LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "PATH", "PYTHONSTARTUP", "PERL5OPT", "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CATALINA_OPTS", "JAVA_OPTS", "CLASSPATH",
    "GCONV_PATH", "OPENSSL_CONF", "HOME", "TZ", "LANG", "LUA_INIT", "common.loader", "shared.loader",
    "org.apache.el.ExpressionFactory", "handlers", "config", "java.util.logging.FileHandler.pattern",
    "1catalina.org.apache.juli.AsyncFileHandler.directory", "bootstrap.include", "osgi.console",
    "com.ibm.ws.logging.log.directory", "beanshell.init.file", "groovy.utilities", "jsr223.init.file",
    "search_paths", "user.classpath", "plugin_dependency_paths", "classfinder.functions.contain",
    "htmlParser.className", "kernel.core_pattern", "kernel.modprobe", "vm.swappiness", "className", "docBase",
    "appBase", "directory", "protocol", "/", "/x", "a.jsp", "a.war/WEB-INF/web.xml", "a.war/index.jsp", "x.sh",
    "throughput_rps", "a",
)  # fmt: skip
"""Names of settings that load, run or open something somewhere."""


PLAN = "<jmeterTestPlan version='1.2'><hashTree>{}<hashTree/></hashTree></jmeterTestPlan>"


def texts(mark: str, tool: str) -> tuple[str, ...]:
    """What makes the file `mark` wherever it is interpreted; `tool` is a script that makes it."""
    up = "../" * 12 + tool.lstrip("/")
    runs = f"Runtime.getRuntime().exec('touch {mark}')"
    return (
        f"os.execute('touch {mark}')",
        f"$(touch {mark})",
        f"`touch {mark}`",
        f"; touch {mark} ;",
        f"'; touch {mark} #",
        f'"; touch {mark} #',
        f"| touch {mark}",
        f"&& touch {mark}",
        f"\ntouch {mark}\n",
        f"a\r\ntouch {mark}",
        f"-c touch {mark}",
        tool,
        up,
        f"file:{tool}",
        f"file://{tool}",
        f"@{tool}",
        f"-XX:OnOutOfMemoryError=touch {mark}",
        f"-XX:OnError=touch {mark}",
        f"-XX:Flags={mark}",
        f"-XX:VMOptionsFile={mark}",
        f"-Xlog:all:file={mark}",
        f"-Xloggc:{mark}",
        f"-XX:HeapDumpPath={mark}",
        f"-XX:StartFlightRecording=filename={mark}",
        f"-agentpath:{tool}",
        f"-javaagent:{tool}",
        f"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,onjcmd=y,launch={tool}",
        "-Dcom.sun.management.jmxremote.port=39371",
        "-Djava.util.logging.config.class=x.Y",
        f"@{mark}",
        f"${{__groovy('touch {mark}'.execute())}}",
        f"${{__BeanShell({runs})}}",
        f"${{__javaScript(java.lang.{runs})}}",
        f"${{__jexl3(''.class.forName('java.lang.Runtime').{runs})}}",
        f"${{__StringToFile({mark},x)}}",
        "${ __eval(${x})}",
        f"<%= {runs} %>",
        PLAN.format(f"<SystemSampler><stringProp name='SystemSampler.command'>{tool}</stringProp></SystemSampler>"),
        "org.apache.catalina.valves.rewrite.RewriteValve",
        f"<server><include location='file:{tool}'/></server>",
        f"require('child_process').execSync('touch {mark}')",
        f"import exec from 'k6/x/exec'; exec.command('touch', ['{mark}'])",
        "http://169.254.169.254/x.jar",
        mark,
        mark.rpartition("/")[0],
    )


def changed(node: Any, text: str, data: tuple[str, ...], at: str = "") -> Iterator[tuple[str, Any]]:
    """Copies of a document, each with the text in one more place: in a value, as a key, below each of KEYS.

    In `data`, fields that the host is said to pass on, no key means anything, so one is enough.
    """
    if isinstance(node, dict):
        for key, child in node.items():
            yield from (
                (path, {**node, key: other}) for path, other in changed(child, text, data, f"{at}.{key}".strip("."))
            )
        if at:  # a model itself has no other keys
            yield f"{at}{{}}", {**node, text: "1"}
            yield from ((f"{at}{{{key}}}", {**node, key: text}) for key in (KEYS[:1] if at.startswith(data) else KEYS))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            for path, other in changed(child, text, data, f"{at}[]"):
                yield path, [*node[:index], other, *node[index + 1 :]]
        yield f"{at}[]", [*node, text]
    else:
        yield at, text
