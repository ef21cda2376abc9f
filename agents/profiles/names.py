"""Names of functions that two runs of the same program share: what runtimes number anew each time is taken out.

A table of rules, applied in order. Each merges what differs by a number only, so two lambdas of one method become one:
the other way, each would vanish and appear, and nothing could be said of either.
"""

from __future__ import annotations

import re

from agents.profiles.base.profile import UNKNOWN, Frame

_LONGEST = 1000
"""Names of more characters are compared as they are: rules look at every place of a name, and again from each."""
_PACKAGES = re.compile(r".*/(?:node_modules|site-packages|dist-packages)/")
_ABSOLUTE = re.compile(r"/|file://|[A-Za-z]:[\\/]")
_UNKNOWN = re.compile(
    r"|\?+|\[unknown.*\]|\[no_Java_frame\]|\[not_walkable_.*\]|\[break_.*\]|\(unknown\)|<unknown>|0x[0-9a-f]+"
)
_THREAD = re.compile(r"\[(?:.* )?tid=#?\d*\]|thread \(.*\)(?:: .*)?|process \d+:.*")
_QUALIFIED = re.compile(r"\w[.:/#]+[\w<(*~$]")
_HEX = r"[0-9a-f]"

RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), made)
    for pattern, made in (
        # async-profiler and jfr-converter: how a frame ran (interpreted, compiled, inlined, kernel)
        (r"_\[[ij01k]\]$", ""),
        # perf maps of the JVM: the class as a signature
        (r"^L([\w/$]+);::", r"\1."),
        # the JVM: lambdas and hidden classes, with the number of JDK 8, 11, 17 and 21
        (rf"\$\$Lambda(?:\$\d+)?(?:[./](?:0x{_HEX}+|\d+))?", "$$Lambda"),
        (rf"(LambdaForm\$\w+)[./]0x{_HEX}+", r"\1"),
        (rf"([\w$])[./+]0x{_HEX}{{6,}}(?=\.|$)", r"\1"),
        (r"\blambda\$(\w+)\$\d+", r"lambda$\1$#"),
        (r"\$anonfun\$(\w+)\$\d+", r"$anonfun$\1$#"),
        # reflection, proxies, enhanced classes
        (r"(Generated(?:Method|Constructor|SerializationConstructor)Accessor)\d+", r"\1#"),
        (r"jdk/proxy\d+/", "jdk/proxy#/"),
        (r"\$Proxy\d+", "$Proxy#"),
        (rf"(\$\$(?:EnhancerBy|FastClassBy)\w*CGLIB)\$\$\w*?{_HEX}+", r"\1"),
        (r"(\$\$SpringCGLIB)\$\$\d+", r"\1"),
        (r"(\$(?:ByteBuddy|HibernateProxy|MockitoMock))\$\w+", r"\1"),
        (r"_\$\$_jvst\w+", "_$$_jvst"),
        # compilers: clones of a function, versions of a symbol, offsets into it
        (r"(?:\.(?:constprop|isra|part|cold|lto_priv|llvm|localalias)(?:\.\d+)*)+$", ""),
        (r"::h[0-9a-f]{16}$", ""),
        (r"@@?(?:GLIBC|GLIBCXX|CXXABI)\w*[\d.]+$", ""),
        (r"\.abi(?:0|internal)$", ""),
        (rf"\+0x{_HEX}+$", ""),
        # V8: how a function was compiled
        (r"^(?:JS|LazyCompile|Function|Script|Eval|RegExp):\s*[*~^+']?", ""),
        # what is left of addresses and threads
        (rf"0x{_HEX}{{4,}}", "0x#"),
        (r"\btid=\d+", "tid=#"),
        (r"^thread \(\d+\)", "thread (#)"),
    )
)
_NUMBERED_THREAD = re.compile(r"\d+")
_MAY_APPLY = re.compile(r"0x|[$@+:;]|_\[|\.(?:cons|isra|part|cold|lto|llvm|local|abi)|Accessor|jdk/proxy|tid=|thread")


def is_thread(frame: Frame) -> bool:
    """Whether the frame is no function, but the thread or process that it ran in."""
    return not frame.place and _THREAD.fullmatch(frame.name) is not None


def is_unknown(frame: Frame) -> bool:
    """Whether the profiler could not tell the function: no name, an address, or a word that says so."""
    return _UNKNOWN.fullmatch(frame.name) is not None


def normal_name(frame: Frame) -> str:
    """The name under which a frame is compared between runs.

    A qualified name (`com/acme/Page.render`, `main.parse`, `JSONDecoder.decode`) says enough; another one keeps its
    file or library, without directories and lines, since two builds of a program lie in different ones.
    """
    name, place = frame.name, frame.place
    if not place:
        name, place = _apart(name)
    if is_unknown(Frame(name)):
        return UNKNOWN
    if is_thread(Frame(name)):
        return _NUMBERED_THREAD.sub("#", name)
    if len(name) <= _LONGEST and _MAY_APPLY.search(name):
        for pattern, made in RULES:
            name = pattern.sub(made, name)
    if not place or _QUALIFIED.search(name):
        return name or UNKNOWN
    return f"{name} ({_short(place)})"


def _apart(label: str) -> tuple[str, str]:
    """The name and the place of a text such as `parse (busy.py:3)`, without line and column."""
    name, bracket, place = label.removesuffix(")").rpartition(" (")
    if not (name and bracket and label.endswith(")")) or "(" in place or ")" in place:
        return label, ""
    for _ in range(2):
        before, colon, line = place.rpartition(":")
        place = before if colon and line.isdecimal() else place
    return name, place


def _short(place: str) -> str:
    """A path within its package; py-spy has shortened its own already, and `node:internal/...` is none."""
    within = _PACKAGES.sub("", place)
    return within if within != place or not _ABSOLUTE.match(place) else place.rsplit("/", 1)[-1]
