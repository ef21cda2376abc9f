"""Which options and properties of Java tune, and no more: an allow-list, so that what Java learns next is not on it.

Options of the JVM can load agents and classes, run commands, open ports, and read and write files (man java); a system
property can name classes and files to whatever reads it. Values without slash can name no place outside the instance.
"""

from __future__ import annotations

import re

_WORD = r"[A-Za-z0-9_-]{0,64}"
_LOG = r"[A-Za-z0-9_%-]{1,64}\.log"
_LOG_OPTIONS = r"[a-z,]{0,100}(?::[a-z]+=[0-9kKmMgG]+(?:,[a-z]+=[0-9kKmMgG]+)*)?"
_PLAIN_WORD = re.compile(_WORD)
_TUNING = re.compile(
    "|".join(
        [
            r"-(?:server|client|ea|da|esa|dsa|enableassertions|disableassertions|showversion|verbose:gc|verbose)",
            r"-X(?:ms|mx|mn|ss|mso|mns|mnx|mos|mox|gcthreads|soft(?:mx|refthreshold))\d+[kKmMgGtT]?",
            r"-X(?:int|comp|mixed|batch|rs|noclassgc|future|quickstart|nojit|jit|compressedrefs|nocompressedrefs)",
            r"-X(?:share|verify|gcpolicy|tune|jvmci|gc|codecache|scmx|shareclasses):[A-Za-z0-9]{1,32}",
            rf"-Xlog(?::(?:disable|[a-z0-9+*=,-]{{1,200}})(?::(?:stdout|stderr|(?:file=)?{_LOG})(?::{_LOG_OPTIONS})?)?)?",
            rf"-Xloggc:{_LOG}",
            r"-XX:[+-](?!Flags|VMOptions)[A-Za-z0-9]{1,80}",
            r"-XX:(?!On[A-Z])[A-Z][A-Za-z0-9]{1,80}=-?\d{1,19}(?:\.\d{1,9})?[kKmMgGtT%]?",
            rf"-XX:(?:NativeMemoryTracking|ShenandoahGC(?:Heuristics|Mode)|CompilationMode)={_WORD}",
            r"-XX:CompileCommand=(?:quiet|(?:exclude|inline|dontinline|compileonly),[A-Za-z0-9_$./*:]{1,200})",
            r"--(?:enable-preview|enable-native-access=[A-Za-z0-9_.,-]{1,200})",
            r"--add-(?:opens|exports|reads|modules)[= ][A-Za-z0-9_./,=-]{1,300}",
            r"-Djava\.security\.egd=file:/dev/(?:\./)?u?random",
        ]
    )
)
_PROPERTY_OPTION = re.compile(r"-D([A-Za-z_][A-Za-z0-9_.-]{0,199})(?:=(.*))?")
_OPEN_DOORS = re.compile(
    r"(?i:com\.sun\.management|(?:.*\.)?rmi(?:\.|$)|.*jdwp|.*jmxremote|osgi\.|.*(?:loader|include|codebase|locations?)$"
    r"|spring\.(?:config|devtools)\.|loader\.|management\.endpoint|.*console(?:\.|$)|.*jndi|.*lookups$|.*unsafe|.*class-?name$"
    r"|java\.(?:library|class|ext|endorsed|security)(?:\.|$)|jdk\.module|jdk\.internal|user\.dir$|java\.io\.tmpdir$"
    r"|(?:.*[._-])?(?:handlers|config|directory|dir|path|file|class|factory|provider)$)"
    r"|.*(?:Config|Directory|Dir|Path|File|Class|Factory|Provider)$",
)
"""Properties that open a port or a console, that name code, files and places, or that take a known hole's lid off: who
may choose them may also choose the requests that go in there."""

_PLATFORM = re.compile(
    r"(?:java|javax|jakarta|jdk|sun|com\.sun|com\.ibm|org\.apache|catalina|tomcat|log4j2?|logback|logging|slf4j|was|wlp"
    r"|liberty|io\.openliberty|user|file|os|openj9|eclipse|equinox|server|package|common|shared)(?:\.|$)|.*\.juli\."
)
_OWN_VALUE = re.compile(r"[A-Za-z0-9_.,:+@-]{0,200}")


def option_is_harmless(option: str) -> bool:
    """Whether a JVM option is known to tune only: sizes, collectors, switches, its own log in the instance."""
    if (match := _PROPERTY_OPTION.fullmatch(option)) and property_is_harmless(match[1], match[2] or ""):
        return True
    return _TUNING.fullmatch(option) is not None and "OnError" not in option and "OnOutOfMemory" not in option


def property_is_harmless(name: str, value: str) -> bool:
    """Whether a property names no class, file or address to Java or a server: a word or a number, or one's own text."""
    if _OPEN_DOORS.match(name):
        return False
    if _PLATFORM.match(name):
        return _PLAIN_WORD.fullmatch(value) is not None
    return _OWN_VALUE.fullmatch(value) is not None
