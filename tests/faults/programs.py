"""What the hosts of a stage run: a witness around a tool, a slow server, a recipe's step that is seen."""

from __future__ import annotations

from pathlib import Path

WITNESS = """#!/bin/sh
# Writes down each start under the cookie of its job, then becomes the real program, or stays on as long as it is held.
case $1 in -v | --version) exec {program} "$@" ;; esac
echo "start $BENCHHUB_JOB" >>"{root}/starts"
[ -e "{root}/hold" ] || exec {program} "$@"
{program} "$@"
status=$?
while [ -e "{root}/hold" ]; do sleep 0.1; done
exit $status
"""

# Answers after 20 ms: a load that leaves the CPUs to whatever else the machine does.
SERVER = """import http.server, sys, time

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.02)
        super().do_GET()

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""

# Held first and freed last: whoever began is seen to end, wherever the worker dies between.
STEP = {
    "kind": "command",
    "run": 'echo "$2" >"$1/etc/held" && echo "begin $2" >>"$1/changes"',
    "undo": 'echo "end $2" >>"$1/changes" && rm -f "$1/etc/held"',
    "observe": 'cat "$1/etc/held" 2>/dev/null || echo free',
}


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
