"""The threads of Tomcat's NIO connector, in Tomcat itself or inside another program."""

from __future__ import annotations

from collections.abc import Sequence


def nio_threads(names: Sequence[str]) -> tuple[str, str] | None:
    """The names of the request threads and of the poller, of the connector that comes first; None without one.

    `http-nio-8080-exec-7` and `http-nio-8080-Poller` may be cut to 15 letters, as Linux does.
    """
    for name in names:
        begin, hyphen, end = name.rpartition("-")
        if hyphen and end and "exec".startswith(end) and "-nio" in begin:
            for rest in ("Poller", "Polle", "Poll", "Pol", "Po", "P"):
                if f"{begin}-{rest}" in names:
                    return name, f"{begin}-{rest}"
    return None
