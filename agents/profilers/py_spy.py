"""py-spy: samples a Python server from outside, its workers included."""

from __future__ import annotations

from agents.base.runtime import Runtime
from agents.profilers.base.profiler import Profiler

_FIND = """
spy=$beside/py-spy
for place in "$HOME/.local/bin/py-spy" /usr/local/bin/py-spy; do
  [ -n "$beside" ] && [ -x "$spy" ] || spy=$(command -v py-spy) || spy=$place
  [ ! -x "$spy" ] || break
done
"""

_LACKS = f"""
{_FIND}
if [ ! -x "$spy" ]; then
  echo "there is no py-spy|Install it there: pip install py-spy, into the server's environment or for the login."
elif [ "$(id -u)" != 0 ] && [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" != 0 ]; then
  echo "a login other than root may not look into processes there|Set kernel.yama.ptrace_scope to 0, or log in as root."
fi
"""

_BEGIN = f"""
one=${{pids%% *}}
beside=$(tr '\\0' '\\n' <"/proc/$one/cmdline" | sed -n 's|^\\(/.*\\)/[^/]*$|\\1|p;q')
{_FIND}
[ -x "$spy" ] || {{ echo "there is no py-spy" >&2; exit 4; }}
engine=py-spy
"""

# A process that is stopped for each look has to run again before it can wait again: on a busy CPU what waits would look
# like what works.
_DURING = """
spies=
for pid in $pids; do
  "$spy" record --pid "$pid" --subprocesses --nonblocking --rate 100 --duration "${seconds%.*}" \\
    --format raw --output "$out.$pid.part" >/dev/null 2>"$out.$pid.err" &
  spies="$spies $!"
done
"""

_END = """
for spy in $spies; do wait "$spy"; done
for pid in $pids; do
  [ -f "$out.$pid.part" ] || { echo "py-spy gave no stacks: $(tail -n 3 "$out.$pid.err")" >&2; exit 4; }
done
"""


class PySpy(Profiler):
    """Weights are samples of threads that do not wait, 100 a second; the process is not stopped for them."""

    kind = "py-spy"
    title = "py-spy"
    of = "Python servers"
    cost = "its memory is read 100 times a second, from outside"

    def fits(self, runtime: Runtime) -> bool:
        return runtime == "python"

    def lacks(self, event: str) -> str:
        return _LACKS

    def begin(self, event: str) -> str:
        return _BEGIN

    def during(self, event: str) -> str:
        return _DURING

    def end(self, event: str) -> str:
        return "spies=${spies-}\n" + _END
