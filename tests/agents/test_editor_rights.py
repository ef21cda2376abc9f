"""What is known to run programs, or to read and write files, is an admin's; ordinary tuning is an editor's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agents.base.rights import Guarded, Rights, unspoken
from agents.drivers import DRIVERS
from agents.formats.java_options import option_is_harmless, property_is_harmless
from agents.servers import SERVERS
from agents.steps import STEPS

KINDS: Mapping[str, Mapping[str, type[Guarded]]] = {"driver": DRIVERS, "server": SERVERS, "step": STEPS}
WRK = {"connections": 1, "threads": 1}
TOMCAT = {"home": "/opt/tomcat"}
LIBERTY = {"home": "/opt/wlp"}
VALVE = "org.apache.catalina.valves.AccessLogValve"


def plan(element: str) -> dict[str, Any]:
    return {"jmx": f"<jmeterTestPlan version='1.2'><hashTree>{element}<hashTree/></hashTree></jmeterTestPlan>"}


def said(text: str, name: str = "a", of: str = "DebugSampler") -> dict[str, Any]:
    return plan(f"<{of}><stringProp name='{name}'>{text}</stringProp></{of}>")


def edit(tag: str, **attributes: str) -> dict[str, Any]:
    return {
        "path": "conf/server.xml",
        "edits": [{"op": "add", "under": "Service", "tag": tag, "attributes": attributes}],
    }


def made(where: str, kind: str, body: Mapping[str, Any]) -> Guarded:
    given = dict(body)
    if kind == "jmeter" and ("jmx" in given or "properties" in given):
        given["allow_shell"] = True  # without it no one can have such a plan
    return KINDS[where][kind].model_validate(given)


ADMINS = [
    ("driver", "wrk", "script", WRK | {"script": "os.execute('id')"}),
    ("driver", "wrk2", "script", WRK | {"offered_rate_rps": 1, "script": "io.open('/etc/x', 'w')"}),
    *(("driver", "wrk", "binary", WRK | {"binary": path}) for path in ("../../tmp/x.sh", "/tmp/wrk", "./wrk", "bash")),
    *(
        ("driver", "wrk", "binary", WRK | {"binary": path})
        for path in ("/usr/../tmp/wrk", "/usr/bin/bash", "/opt/wrk/sh")
    ),
    ("driver", "k6", "script", {"users": 1, "script": "open('/etc/shadow')"}),
    ("driver", "k6", "binary", {"users": 1, "binary": "/home/x/k6"}),
    ("driver", "autocannon", "binary", {"connections": 1, "binary": "node"}),
    ("driver", "hyperfoil", "home", {"connections": 1, "threads": 1, "home": "/tmp/hyperfoil"}),
    ("driver", "hyperfoil", "home", {"connections": 1, "threads": 1, "home": "/opt/../tmp/hyperfoil"}),
    ("driver", "jmeter", "home", {"home": "/tmp/jmeter"}),
    ("driver", "jmeter", "binary", {"binary": "sh"}),
    *(
        ("driver", "jmeter", "jmx", said(text))
        for text in (
            "${__groovy(1)}",
            "${__BeanShell(1)}",
            "${__javaScript(1)}",
            "${__jexl3(1)}",
            "${__jexl2(1)}",
            "${__eval(x)}",
            "${__FileToString(/etc/shadow)}",
            "${__StringToFile(/etc/x,y)}",
            "${__StringFromFile(/etc/passwd)}",
            "${__CSVRead(/etc/passwd,0)}",
            "${__XPath(/etc/x,y)}",
            "${__env(HOME)}",
            "${__setProperty(a,b)}",
            "${__evalVar(a)}",
            "${ __groovy (1)}",
            "${__later(1)}",
        )
    ),
    ("driver", "jmeter", "jmx", plan("<SystemSampler/>")),
    ("driver", "jmeter", "jmx", plan("<JSR223Sampler/>")),
    ("driver", "jmeter", "jmx", plan("<BeanShellListener/>")),
    ("driver", "jmeter", "jmx", plan("<DebugSampler resolves-to='java.lang.ProcessBuilder'/>")),
    ("driver", "jmeter", "jmx", plan("<DebugSampler defined-in='x.Y'/>")),
    ("driver", "jmeter", "jmx", said("java", "IfController.condition", "IfController")),
    ("driver", "jmeter", "jmx", said("/etc/shadow", "filename", "CSVDataSet")),
    ("driver", "jmeter", "jmx", said("/etc/shadow", "File.path", "HTTPFileArg")),
    ("driver", "jmeter", "jmx", said("/tmp/x.jar", "TestPlan.user_define_classpath", "TestPlan")),
    ("driver", "jmeter", "jmx", said("x.Y", "classname", "Backend")),
    ("driver", "jmeter", "jmx", said("file", "HTTPSampler.protocol", "HTTPSamplerProxy")),
    ("driver", "jmeter", "jmx", said("${scheme}", "HTTPSampler.protocol", "HTTPSamplerProxy")),
    *(
        ("driver", "jmeter", "properties", {"properties": {name: "x"}})
        for name in (
            "beanshell.init.file",
            "groovy.utilities",
            "search_paths",
            "user.classpath",
            "htmlParser.className",
            "tcp.handler",
            "security.provider.1",
            "include",
            "hc.parameters.file",
            "xstream.x",
            "proxy.cert.file",
        )
    ),
    ("driver", "jmeter", "properties", {"properties": {"scheme": "file"}}),
    ("server", "command", "kind", {"argv": ["true"], "ready": {"command": ["id"]}}),
    ("server", "tomcat", "home", {"home": "/tmp/tomcat"}),
    ("server", "tomcat", "java_home", TOMCAT | {"java_home": "/var/tmp/java"}),
    *(
        ("server", "tomcat", "webapps", TOMCAT | {"webapps": [path]})
        for path in (
            "/etc",
            "/opt/tomcat/conf",
            "/opt/tomcat/webapps/manager",
            "/opt/tomcat/webapps/host-manager",
            "/root/x.war",
        )
    ),
    ("server", "tomcat", "jvm_options", TOMCAT | {"jvm_options": ["-XX:OnOutOfMemoryError=id"]}),
    ("server", "liberty", "apps", LIBERTY | {"apps": {"/": "/etc"}}),
    ("server", "haproxy", "binary", {"binary": "/tmp/haproxy"}),
    ("server", "haproxy", "proxy_to", {"proxy_to": ["10.0.0.1:80"]}),
    ("server", "haproxy", "conf", {"conf": "listen a\n  bind {address}:{port}\n"}),
    ("server", "jar", "jar", {"jar": "/tmp/x.jar"}),
    ("server", "jar", "java_home", {"jar": "/opt/x.jar", "java_home": "/tmp/java"}),
    ("server", "jar", "jvm_options", {"jar": "/opt/x.jar", "jvm_options": ["-javaagent:/tmp/x.jar"]}),
    ("server", "jar", "arguments", {"jar": "/opt/x.jar", "arguments": ["--spring.config.location=/tmp/x"]}),
    ("server", "nginx", "binary", {"binary": "/tmp/nginx"}),
    ("server", "nginx", "binary", {"binary": "sh"}),
    ("server", "nginx", "root", {"root": "/etc"}),
    ("server", "nginx", "proxy_to", {"proxy_to": ["10.0.0.1:80"]}),
    ("server", "nginx", "conf", {"conf": "http { server { listen {address}:{port}; } }"}),
    ("server", "node", "entry", {"entry": "/tmp/x.js"}),
    ("server", "node", "binary", {"entry": "/opt/x.js", "binary": "/tmp/node"}),
    ("server", "node", "flags", {"entry": "/opt/x.js", "flags": ["--require=/tmp/x.js"]}),
    ("server", "node", "arguments", {"entry": "/opt/x.js", "arguments": ["x"]}),
    ("server", "postgresql", "bin_dir", {"bin_dir": "/tmp/bin"}),
    ("server", "postgresql", "prepared", {"prepared": "/var/lib/postgresql/15/main"}),
    ("server", "postgresql", "sql", {"sql": "\\! id"}),
    *(
        ("server", "postgresql", "settings", {"settings": {name: value}})
        for name, value in {
            "archive_command": "id",
            "shared_preload_libraries": "x",
            "ssl_passphrase_command": "id",
            "dynamic_library_path": "/tmp",
            "restore_command": "id",
            "work_mem": "4MB; id",
        }.items()
    ),
    ("server", "python", "directory", {"application": "a:b", "directory": "/tmp/shop"}),
    ("server", "python", "binary", {"application": "a:b", "directory": "/opt/shop", "binary": "/tmp/python3"}),
    ("server", "python", "arguments", {"application": "a:b", "directory": "/opt/shop", "arguments": ["--reload"]}),
    ("server", "redis", "binary", {"binary": "/tmp/redis-server"}),
    *(
        ("server", "redis", "settings", {"settings": {name: value}})
        for name, value in {
            "dbfilename": "x.so",
            "appenddirname": "x",
            "enable-debug-command": "yes",
            "unknown": "1",
            "hz": "1 # '",
        }.items()
    ),
    *(
        ("step", "properties", "values", {"path": path, "values": {name: "id"}, "separator": separator})
        for path, name, separator in (
            ("postgresql.conf", "archive_command", "="),
            ("postgresql.conf", "unknown", "="),
            ("redis.conf", "dbfilename", " "),
            ("redis.conf", "user", " "),
        )
    ),
    ("step", "properties", "values", {"path": "nginx.conf", "values": {"user": "root;"}, "separator": " "}),
    (
        "step",
        "properties",
        "values",
        {"path": "nginx.conf", "values": {"gzip": "on; user root"}, "separator": " ;"},
    ),
    ("step", "properties", "values", {"path": "nginx.conf", "values": {"load_module": "a.so"}, "separator": " ;"}),
    ("step", "properties", "remove", {"path": "nginx.conf", "remove": ["deny"], "separator": " ;"}),
    ("step", "properties", "remove", {"path": "redis.conf", "remove": ["requirepass"], "separator": " "}),
    ("step", "properties", "path", {"path": "pg_hba.conf", "values": {"host": "all"}, "separator": " "}),
    ("server", "liberty", "dropins", LIBERTY | {"dropins": {"x.war/x.jsp": "<%= 1 %>"}}),
    ("server", "liberty", "dropins", LIBERTY | {"dropins": {"x.war/WEB-INF/web.xml": "<web-app/>"}}),
    ("server", "liberty", "bootstrap", LIBERTY | {"bootstrap": {"osgi.console": "5678"}}),
    ("server", "liberty", "bootstrap", LIBERTY | {"bootstrap": {"bootstrap.include": "http://x/y"}}),
    ("server", "liberty", "jvm_options", LIBERTY | {"jvm_options": ["-javaagent:/tmp/x.jar"]}),
    *(
        ("server", "liberty", "server_xml", LIBERTY | {"server_xml": f"<server>{text}</server>"})
        for text in (
            "<include location='http://x/y.xml'/>",
            "<library><fileset dir='/tmp'/></library>",
            "<webApplication location='/etc'/>",
            "<webApplication location='../../x.war'/>",
            "<httpEndpoint><accessLogging filePath='/etc/cron.d/x'/></httpEndpoint>",
            "<logging logDirectory='/etc'/>",
            "<executor maxThreads='${env.HOME}'/>",
            "<feature>${x}</feature>",
        )
    ),
    *(
        ("step", "xml_edit", "edits", document)
        for document in (
            edit("Listener", className="x.Y"),
            edit("Valve", className="org.apache.catalina.valves.rewrite.RewriteValve"),
            edit("Valve", className=VALVE, directory="/etc/cron.d", prefix="x", suffix="", pattern="* * * * * root id"),
            edit("Valve", className=VALVE, directory="webapps", suffix=".jsp"),
            edit("Context", docBase="/"),
            edit("Host", name="x", appBase="/"),
            edit("Executor", className="x.Y"),
            edit("Connector", protocol="x.Y"),
            edit("Connector", keystoreFile="/etc/shadow"),
            edit("Resource", factory="x"),
            edit("Realm", className="x.Y"),
        )
    ),
    *(
        ("step", "xml_edit", "path", edit("Executor", name="a") | {"path": path})
        for path in ("/etc/x.xml", "webapps/ROOT/WEB-INF/web.xml", "conf/web.xml", "conf/Catalina/localhost/x.xml")
    ),
    *(
        ("step", "file", "content", {"path": path, "content": "x"})
        for path in (
            "conf/server.xml",
            "bin/setenv.sh",
            "webapps/ROOT/x.jsp",
            "webapps/x/WEB-INF/web.xml",
            "/etc/x.conf",
        )
    ),
    *(
        ("step", "properties", "values", {"path": "conf/catalina.properties", "values": {name: value}})
        for name, value in (
            ("common.loader", "x"),
            ("org.apache.x", "a.B"),
            ("a", "http://x/y"),
            ("java.security.policy", "x"),
            ("java.util.logging.config.file", "x"),
            ("com.sun.management.jmxremote.port", "1"),
        )
    ),
    ("step", "properties", "path", {"path": "webapps/x/WEB-INF/classes/a.properties", "values": {"a": "1"}}),
    *(
        ("step", "environment", "variables", {"variables": {name: "x"}})
        for name in (
            "LD_PRELOAD",
            "LD_AUDIT",
            "PATH",
            "BASH_ENV",
            "ENV",
            "NODE_OPTIONS",
            "JAVA_TOOL_OPTIONS",
            "PYTHONPATH",
            "HOME",
            "OPENSSL_CONF",
            "GCONV_PATH",
            "DOTNET_STARTUP_HOOKS",
            "MALLOC_TRACE",
            "ANY_OTHER",
        )
    ),
    ("step", "environment", "variables", {"variables": {"TZ": ":/etc/shadow"}}),
    ("step", "environment", "variables", {"variables": {"LANG": "../../x"}}),
]

EDITORS = [
    ("driver", "wrk", WRK | {"headers": {"A": "b; c"}}),
    ("driver", "wrk2", WRK | {"offered_rate_rps": 1, "binary": "/usr/local/bin/wrk"}),
    ("driver", "wrk2", WRK | {"offered_rate_rps": 1, "binary": "/opt/wrk2/wrk"}),
    (
        "driver",
        "jmeter",
        {"home": "/opt/apache-jmeter-5.6.3", "properties": {"threads": "{users}", "my.host": "{host}"}},
    ),
    ("driver", "jmeter", {"properties": {"httpclient4.retrycount": 1}}),
    ("server", "tomcat", TOMCAT | {"java_home": "/usr/lib/jvm/java-21", "webapps": ["ROOT", "/opt/rest.war"]}),
    ("server", "tomcat", TOMCAT | {"webapps": ["/srv/webapps/shop"], "jvm_options": ["-Xmx1g", "-XX:+UseZGC"]}),
    ("server", "liberty", LIBERTY | {"apps": {"/": "/opt/rest.war"}, "dropins": {"hello.war/index.html": "<p>"}}),
    ("server", "liberty", LIBERTY | {"server_xml": "<server><executor maxThreads='8'/></server>"}),
    ("server", "haproxy", {"settings": {"nbthread": "2", "timeout client": "5s"}, "tls": True}),
    ("server", "jar", {"jar": "/opt/shop/quarkus-run.jar", "framework": "quarkus", "jvm_options": ["-Xmx1g"]}),
    ("server", "jar", {"jar": "/srv/a.jar", "framework": "other", "jvm_options": ["-Dmy.port={port}"]}),
    ("server", "nginx", {"settings": {"sendfile": "on"}, "pages": {"a/b.html": "$(id)"}, "root": ""}),
    ("server", "nginx", {"root": "/srv/www", "tls": True, "binary": "/opt/nginx/sbin/nginx"}),
    ("server", "node", {"entry": "/srv/shop/server.mjs", "flags": ["--max-semi-space-size=64"]}),
    ("server", "postgresql", {"settings": {"shared_buffers": "1GB", "jit": "off"}, "pgbench_scale": 10}),
    ("server", "postgresql", {"bin_dir": "/usr/lib/postgresql/15/bin", "prepared": "/srv/pg15"}),
    ("server", "python", {"application": "a.b:c", "directory": "/opt/a", "binary": "/opt/a/venv/bin/python"}),
    ("server", "redis", {"settings": {"io-threads": "4"}, "binary": "valkey-server", "persistence": "append_only"}),
    ("step", "properties", {"path": "postgresql.conf", "values": {"shared_buffers": "1GB", "jit": "'off'"}}),
    ("step", "properties", {"path": "redis.conf", "values": {"maxmemory": "1gb"}, "separator": " "}),
    ("step", "properties", {"path": "redis.conf", "remove": ["maxmemory"], "separator": " "}),
    ("step", "properties", {"path": "nginx.conf", "values": {"worker_processes": "4"}, "separator": " ;"}),
    ("step", "environment", {"variables": {"TZ": "Europe/Berlin", "MALLOC_ARENA_MAX": "2", "LC_ALL": "de_DE.UTF-8"}}),
    ("step", "properties", {"path": "conf/catalina.properties", "values": {"tomcat.util.buf.StringCache.x": "true"}}),
    ("step", "properties", {"path": "conf/logging.properties", "values": {".level": "WARNING"}}),
    ("step", "file", {"path": "webapps/ROOT/index.html", "content": "<%= 1 %>"}),
    ("step", "xml_edit", edit("Executor", name="pool", namePrefix="exec-", maxThreads="200")),
    ("step", "xml_edit", edit("Connector", protocol="AJP/1.3", address="127.0.0.1", port="8009")),
    ("step", "xml_edit", edit("UpgradeProtocol", className="org.apache.coyote.http2.Http2Protocol")),
    (
        "step",
        "xml_edit",
        edit("Valve", className=VALVE, directory="logs", prefix="access", suffix=".log", pattern="%h %D"),
    ),
]

OPTIONS = {
    True: [
        "-Xmx1g",
        "-Xms512m",
        "-Xss1m",
        "-Xmn1g",
        "-server",
        "-XX:+UseG1GC",
        "-XX:-UseCompressedOops",
        "-XX:MaxGCPauseMillis=50",
        "-Xbatch",
        "-Xint",
        "-XX:ReservedCodeCacheSize=240M",
        "-XX:NativeMemoryTracking=summary",
        "-Xlog:gc*:file=gc.log",
        "-Xlog:gc",
        "-verbose:gc",
        "-XX:CompileCommand=quiet",
        "-Dpeople.memcached=10.0.0.5:11211",
        "-Djava.net.preferIPv4Stack=true",
        "-Dapp.profile=fast",
        "-Djdk.virtualThreadScheduler.parallelism=4",
        "-Djava.security.egd=file:/dev/urandom",
        "--enable-preview",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-Xlog:gc*,safepoint=info:file=gc.log:time,uptime:filecount=5,filesize=10M",
    ],
    False: [
        *[
            "-javaagent:x.jar",
            "-agentlib:jdwp=x",
            "-agentpath:/x.so",
            "-XX:OnError=reboot",
            "-XX:OnOutOfMemoryError=reboot",
            "-XX:Flags=x",
            "-XX:VMOptionsFile=x",
            "-XX:HeapDumpPath=/x",
            "-XX:ErrorFile=x",
            "-Xlog:all:file=/x",
            "-Xlog:all:file=webapps/ROOT/x.jsp",
            "-Xloggc:/x",
            "-Xbootclasspath/a:x",
            "-cp",
            "-jar",
            "--module-path=x",
            "--patch-module=x",
            "@args",
            "-XX:SharedArchiveFile=x",
            "-XX:StartFlightRecording=filename=/x",
            "-XX:AOTLibrary=x",
            "-Djava.library.path=x",
            "-Djava.class.path=x",
            "-Xrunx",
            "-Dcom.sun.management.jmxremote.port=1",
            "-Djava.rmi.server.codebase=x",
            "-Dlog4j2.configurationFile=x",
            "-Dlog4j2.formatMsgNoLookups=false",
            "-Dlog4j2.enableJndiLookup=true",
            "-Dorg.apache.commons.collections.enableUnsafeSerialization=true",
            "-Dspring.h2.console.enabled=true",
            "-Dspring.devtools.remote.secret=x",
            "-Dspring.config.import=configserver:",
            "-Dspring.datasource.driver-class-name=x",
            "-Dspring.flyway.locations=x",
            "-Dmanagement.endpoint.env.post.enabled=true",
            "-Dloader.main=x.Y",
            "-Djava.system.class.loader=x",
            "-Dcatalina.config=http://x",
            "-Djava.util.logging.config.class=x",
            "-Dcatalina.base=/x",
            "-Djavax.xml.parsers.SAXParserFactory=x.Y",
            "-XX:CompilerDirectivesFile=x",
            "-XX:ExtraSharedClassListFile=x",
            "-XX:LogFile=x",
            "-Dlogging.config=http://x",
            "-Dapp.home=/etc",
            "-XX:OnError=1",
        ],
        "-XX:OnOutOfMemoryError=kill -9 %p",
        "-XX:CompileCommand=log,a.B::c\n-javaagent:x",
    ],
}


@pytest.mark.parametrize(
    ("where", "kind", "field", "body"), ADMINS, ids=[f"{kind}-{json.dumps(body)[:60]}" for _, kind, _, body in ADMINS]
)
def test_what_runs_programs_or_touches_files_is_an_admins(
    where: str, kind: str, field: str, body: Mapping[str, Any]
) -> None:
    assert field in {one.field for one in made(where, kind, body).reserved()}


@pytest.mark.parametrize(("where", "kind", "body"), EDITORS)
def test_ordinary_tuning_is_an_editors(where: str, kind: str, body: Mapping[str, Any]) -> None:
    assert KINDS[where][kind].model_validate(body).reserved() == ()


@pytest.mark.parametrize("harmless", [True, False])
def test_options_of_a_jvm_that_tune_are_told_from_those_that_do_more(harmless: bool) -> None:
    assert [option for option in OPTIONS[harmless] if option_is_harmless(option) is not harmless] == []


def test_a_property_of_java_is_a_word_and_one_of_the_application_ordinary_text() -> None:
    assert property_is_harmless("org.apache.catalina.x", "true")
    assert not property_is_harmless("org.apache.catalina.x", "a.B")
    assert property_is_harmless("shop.backend", "db1:5432")
    assert not property_is_harmless("shop.backend", "jdbc:h2:mem;INIT=x")


def test_a_field_that_its_kind_forgets_is_an_admins_as_soon_as_it_is_set() -> None:
    class Forgetful(Guarded):
        rights = Rights("nothing")
        number: int = 1
        text: str = ""

    assert unspoken(Forgetful) == ["text"]
    assert Forgetful(number=2).reserved() == ()
    assert [one.field for one in Forgetful(text="x").reserved()] == ["text"]


def test_a_kind_that_is_an_admins_whole_says_what_may_differ_between_launches() -> None:
    step = STEPS["command"].model_validate({"run": "a", "undo": "b", "arguments": ["c"]})
    other = step.model_copy(update={"arguments": ("d",)})
    assert step.reserved() == other.reserved() != step.model_copy(update={"run": "d"}).reserved()
