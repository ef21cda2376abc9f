"""What runs on the SUT for nginx, in POSIX sh; all that varies comes in as arguments."""

from __future__ import annotations

from agents.servers.base.frames import FRAME
from agents.servers.base.native import FIND_PROGRAM
from agents.servers.base.process import PROCESS_FRAMES
from agents.servers.base.proxying import SELF_SIGNED

VERSION = f"""
{FIND_PROGRAM}
need "$1" binary
[ -z "$2" ] || [ -d "$2" ] || {{ echo "there is no directory $2 to serve, or it cannot be read" >&2; exit 1; }}
[ -z "$3" ] || command -v openssl >/dev/null || {{ echo "no openssl on this host, which tls needs" >&2; exit 1; }}
"$1" -V 2>&1
"""

# A build without one of these modules does not know its directive.
CREATE = f"""
{FIND_PROGRAM}{SELF_SIGNED}
need "$1" binary
mkdir -p html temporary
built=$("$1" -V 2>&1)
for module in proxy fastcgi uwsgi scgi; do
  case $built in *--without-http_"$module"_module*) ;; *) echo "${{module}}_temp_path temporary/$module;";; esac
done >temporary.conf
echo "client_body_temp_path temporary/client_body;" >>temporary.conf
if [ -n "$2" ]; then self_signed; fi
"""

# As root nginx would give its workers to an account that may not enter the instance. `auto` counts the CPUs of the
# machine, nproc those that the process may use.
START = f"""
{FIND_PROGRAM}
binary=$1 own=$3
cd -- "$2" || exit 1
unset NGINX
says() {{ grep -Eqs "(^|[;{{}}])[[:space:]]*$1[[:space:]]" nginx.conf; }}
global="daemon off; pid nginx.pid;"
if [ -n "$own" ] && ! says worker_processes; then global="$global worker_processes $(nproc);"; fi
if [ "$(id -u)" = 0 ] && ! says user; then global="$global user $(id -un) $(id -gn);"; fi
case $("$binary" -h 2>&1) in *"-e filename"*) set -- -e stderr;; *) set --;; esac
exec "$binary" -p "$PWD/" -c nginx.conf "$@" -g "$global" 2>&1
"""

EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}{FIND_PROGRAM}
"$1" -V 2>&1 | frame build
cat "$2/nginx.conf" | frame conf
cat /proc/"$3"/task/*/children 2>/dev/null | tr ' ' '\\n' | while read -r child; do
  tr '\\0' ' ' <"/proc/$child/cmdline" 2>/dev/null; echo
done | grep -c '^nginx: worker' | frame workers
process_frames "$3"
"""
