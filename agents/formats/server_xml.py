"""Which settings in the XML of Tomcat and Liberty tune the server: an allow-list of elements, attributes and values.

Both servers instantiate whatever class a `className` names, write logs where they are told, serve any directory, and
read files that others include. So a value may be a number or a word (it can name neither a class with a package nor a
place), or stands in a short list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from agents.base.installed import is_web_application
from agents.formats.xml_document import XmlError, local_name, parse_xml

_WORD = re.compile(r"[A-Za-z0-9_-]{0,64}|\*")
_CLASSES = frozenset(
    {
        *(f"org.apache.coyote.http11.Http11{name}Protocol" for name in ("Nio", "Nio2", "Apr")),
        *(f"org.apache.coyote.ajp.Ajp{name}Protocol" for name in ("Nio", "Nio2", "Apr")),
        "org.apache.coyote.http2.Http2Protocol",
        "org.apache.catalina.core.StandardThreadExecutor",
        "org.apache.catalina.core.StandardVirtualThreadExecutor",
        "org.apache.catalina.valves.AccessLogValve",
        "org.apache.catalina.valves.StuckThreadDetectionValve",
        "org.apache.tomcat.util.net.openssl.OpenSSLImplementation",
        "org.apache.tomcat.util.net.openssl.panama.OpenSSLImplementation",
        "org.apache.tomcat.util.net.jsse.JSSEImplementation",
    }
)
_ANY = frozenset({"*"})
ELEMENTS: Mapping[str, frozenset[str]] = {
    "Connector": _ANY,
    "Executor": _ANY,
    "UpgradeProtocol": _ANY,
    "Resources": frozenset(
        {"cachingAllowed", "cacheMaxSize", "cacheTtl", "cacheTTL", "cacheObjectMaxSize", "trackLockedFiles"}
    ),
    "Context": frozenset({"reloadable", "cookies", "swallowOutput", "cachingAllowed", "crossContext", "useHttpOnly"}),
    "Manager": frozenset({"pathname", "maxActiveSessions", "sessionIdLength", "processExpiresFrequency"}),
    "Engine": frozenset({"backgroundProcessorDelay", "startStopThreads", "name", "defaultHost", "jvmRoute"}),
    "Host": frozenset(
        {"name", "autoDeploy", "deployOnStartup", "unpackWARs", "startStopThreads", "backgroundProcessorDelay"}
    ),
    "Service": frozenset({"name"}),
    "Server": frozenset({"utilityThreads", "utilityThreadsAsDaemon"}),
    "Valve": frozenset(
        {"className", "pattern", "directory", "prefix", "suffix", "buffered", "rotatable", "maxDays", "fileDateFormat"}
        | {
            "requestAttributesEnabled",
            "resolveHosts",
            "enabled",
            "threshold",
            "renameOnRotate",
            "maxLogMessageBufferSize",
        }
    ),
    "server": frozenset({"description"}),
    "featureManager": frozenset({"onError"}),
    "feature": frozenset(),
    "executor": _ANY,
    "httpEndpoint": frozenset({"id", "host", "httpPort", "httpsPort", "enabled", "accessLoggingRef", "onError"}),
    "httpOptions": _ANY,
    "http2Options": _ANY,
    "tcpOptions": _ANY,
    "httpSession": _ANY,
    "connectionManager": _ANY,
    "httpAccessLogging": frozenset({"id", "enabled", "maxFiles", "maxFileSize"}),
    "accessLogging": frozenset({"id", "enabled", "maxFiles", "maxFileSize"}),
    "logging": frozenset({"consoleLogLevel", "traceSpecification", "maxFiles", "maxFileSize", "copySystemStreams"}),
    "config": frozenset({"updateTrigger", "monitorInterval"}),
    "applicationMonitor": frozenset({"updateTrigger", "dropinsEnabled", "pollingRate"}),
    "webContainer": _ANY,
    "webApplication": frozenset({"id", "name", "type", "context-root", "contextRoot", "location", "autoStart"}),
}
"""Element -> attributes that anybody may set: with a word or a number, and a few with what stands below."""

_VALUES: Mapping[str, re.Pattern[str]] = {
    "protocol": re.compile(r"(?:HTTP/1\.1|AJP/1\.3)"),
    "address": re.compile(r"[0-9.]{7,15}|[0-9a-fA-F:]{2,39}"),
    "name": re.compile(r"[A-Za-z0-9_.-]{1,100}"),
    "compressibleMimeType": re.compile(r"[A-Za-z0-9+./,; -]{1,500}"),
    "compressableMimeType": re.compile(r"[A-Za-z0-9+./,; -]{1,500}"),
    "pattern": re.compile(r"[^<>]{0,500}"),
    "suffix": re.compile(r"(?:\.(?:log|txt))?"),
    "traceSpecification": re.compile(r"[A-Za-z0-9_.*=:-]{1,200}"),
    "contextRoot": re.compile(r"/[A-Za-z0-9._~/-]{0,200}"),
    "context-root": re.compile(r"/[A-Za-z0-9._~/-]{0,200}"),
    "description": re.compile(r"[A-Za-z0-9 ,.-]{0,200}"),
}
_LOG_DIRECTORIES = ("", "logs")
_FEATURE = re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,99}")


def setting_is_harmless(element: str, attribute: str, value: str) -> bool:
    """Whether anybody may give this attribute of that element this value."""
    known = ELEMENTS.get(element)
    if known is None or not (attribute in known or known is _ANY):
        return False
    if attribute == "directory":
        return value in _LOG_DIRECTORIES
    if attribute == "location":
        return value.startswith("/") and is_web_application(value)
    if attribute in ("className", "protocol", "sslImplementationName") and value in _CLASSES:
        return True
    if attribute == "className":
        return False
    pattern = _VALUES.get(attribute)
    return _WORD.fullmatch(value) is not None or (pattern is not None and pattern.fullmatch(value) is not None)


def document_is_harmless(text: str) -> bool:
    """Whether a whole configuration holds such settings only."""
    try:
        root = parse_xml(text.encode())
    except XmlError:
        return False
    for element in root.iter("*"):
        name = local_name(element)
        if name not in ELEMENTS or any(
            not setting_is_harmless(name, str(a), str(v)) for a, v in element.attrib.items()
        ):
            return False
        said = (element.text or "").strip()
        if said and not (name == "feature" and _FEATURE.fullmatch(said)):
            return False
    return True
