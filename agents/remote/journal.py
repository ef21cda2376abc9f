"""The undo journal on the SUT: what was found before each change, and a script that puts it back without BenchHub."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterable, Mapping

from agents.base.command import Command, script
from agents.events import StepIntended
from agents.remote.job_commands import kill_command
from agents.remote.machine_place import GIVE_UP_CLAIMS

# A cut link ends `cat` like the end of the data does, so only the length tells a whole journal from half of one.
_WRITE = r"""
set -e
umask 077
mkdir -p "$1"
cd "$1"
cat > .entry.tmp
[ "$(wc -c < .entry.tmp)" -eq "$3" ] || { echo "the journal did not arrive whole" >&2; exit 1; }
sed -n '1p' .entry.tmp > .json.tmp
sed '1d' .entry.tmp > .restore.tmp
rm -f .entry.tmp
chmod 700 .restore.tmp
sync .json.tmp .restore.tmp 2>/dev/null || sync
mv -f .json.tmp "$2.json"
mv -f .restore.tmp restore.sh
sync . 2>/dev/null || sync
"""

KILL_GRACE_S = 5

# Needs $run, the run's directory. A job of root can only be ended by root; without sudo there is none.
_END_JOB = shlex.quote(kill_command("/run/job", KILL_GRACE_S).argv[2])
END_JOBS = f"""
as_root=
[ "$(id -u)" = 0 ] || ! sudo -n true 2>/dev/null || as_root="sudo -n"
for job in "$run"/jobs/*/; do
  [ ! -d "$job" ] || $as_root sh -c {_END_JOB} sh "${{job%/}}" {KILL_GRACE_S} ""
done
""".strip()

_HEADER = f"""#!/bin/sh
# Ends what the run started on this host and puts the host back as it was before. Works without BenchHub: run it as the
# same user, as often as you like.
if [ "$(id -u)" = 0 ]; then SUDO=; else SUDO="sudo -n"; fi
failed=0
run=$(cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 1
{END_JOBS}
"""

# The machine is free for other logins then, and whoever surveys it finds nothing to put back.
_FOOTER = f"""
[ "$failed" -eq 0 ] || exit "$failed"
: >"$run/settled"
{GIVE_UP_CLAIMS}
exit 0
"""


def undo_text(commands: Iterable[Command]) -> tuple[str, ...]:
    """Each command as one line of shell that a person can run; input travels as base64, `$SUDO` asks for root."""
    lines = []
    for command in commands:
        line = f"$SUDO {command.shell()}" if command.privileged else command.shell()
        if command.stdin:
            line = f"printf %s '{base64.b64encode(command.stdin).decode()}' | base64 -d | {line}"
        lines.append(line)
    return tuple(lines)


def restore_script(entries: Mapping[int, StepIntended]) -> str:
    """The whole restore.sh for these entries, last change first. It goes on after a failure and says so at the end."""
    parts = [_HEADER]
    for index in sorted(entries, reverse=True):
        entry = entries[index]
        title = entry.title.replace("\n", " ")
        parts.append(f"# {index}: {title}\n")
        parts += [f"{line} || {{ echo 'failed: step {index}' >&2; failed=1; }}\n" for line in entry.undo]
    parts.append(_FOOTER)
    return "".join(parts)


def write_command(directory: str, entries: Mapping[int, StepIntended], index: int) -> Command:
    """Writes entry `index` and the restore.sh of all `entries`: temporary name, sync, rename, sync the directory."""
    entry = entries[index]
    fields = {"index": index, "title": entry.title, "before": dict(entry.before), "undo": list(entry.undo)}
    line = json.dumps(fields)
    data = f"{line}\n{restore_script(entries)}".encode()
    return script(_WRITE, directory, f"{index:04d}", str(len(data)), stdin=data)
