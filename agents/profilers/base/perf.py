"""What all that uses perf asks of a host."""

from __future__ import annotations

PERF_PATH = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"

LACKS_PERF = f"""
{PERF_PATH}
if ! command -v perf >/dev/null; then
  echo "there is no perf|Install it there as root: apt-get install linux-perf (Ubuntu: linux-tools-generic)"
elif ! perf stat -e task-clock -- true >/dev/null 2>&1; then
  echo "the host does not let $(id -un) use perf|Set kernel.perf_event_paranoid to 1 there, or log in as root."
fi
"""
