"""What runs on the SUT for HAProxy, in POSIX sh; all that varies comes in as arguments."""

from __future__ import annotations

from agents.servers.base.frames import FRAME
from agents.servers.base.native import FIND_PROGRAM
from agents.servers.base.process import PROCESS_FRAMES
from agents.servers.base.proxying import SELF_SIGNED

VERSION = f"""
{FIND_PROGRAM}
need "$1" binary
[ -z "$2" ] || command -v openssl >/dev/null || {{ echo "no openssl on this host, which tls needs" >&2; exit 1; }}
"$1" -v 2>&1
"""

CREATE = f"""
{SELF_SIGNED}
if [ -n "$1" ]; then
  self_signed
  cat tls/certificate.pem tls/key.pem >tls/both.pem
fi
"""

START = f"""
{FIND_PROGRAM}
cd -- "$2" || exit 1
unset HAPROXY_MWORKER HAPROXY_MWORKER_REEXEC HAPROXY_LOCALPEER
exec "$1" -db -f haproxy.cfg 2>&1
"""

EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}{FIND_PROGRAM}
"$1" -vv 2>&1 | frame build
cat "$2/haproxy.cfg" | frame conf
process_frames "$3"
"""
