"""What runs on the SUT for Redis and Valkey, in POSIX sh; all that varies comes in as arguments."""

from __future__ import annotations

from agents.servers.base.frames import FRAME
from agents.servers.base.native import FIND_PROGRAM
from agents.servers.base.process import PROCESS_FRAMES

VERSION = f"""
{FIND_PROGRAM}
need "$1" binary
"$1" --version 2>&1
"""

# Whoever reaches the port may use the data and no more: an account that may do all could write files of the host. Only
# this login can read the password of the other account, and the configuration has its hash alone.
CREATE = f"""
{FIND_PROGRAM}
need "$1" binary
case $("$1" --version) in *" v=6.0."*) channels=;; *) channels='&*';; esac
password=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')
hash=$(printf %s "$password" | sha256sum)
hash=${{hash%% *}}
[ ${{#password}} = 64 ] && [ ${{#hash}} = 64 ] || {{ echo "od and sha256sum could not make a password" >&2; exit 1; }}
printf '%s\\n' "$2" "$3" "$password" >.control
harmless='+client +config|get +flushall +flushdb +info +keys +latency +memory +slowlog +sort'
cat >>redis.conf <<END
user default on nopass ~* $channels +@all -@admin -@dangerous $harmless
user benchhub on #$hash ~* $channels +@all
END
"""

START = f"""
{FIND_PROGRAM}
cd -- "$2" || exit 1
exec "$1" redis.conf 2>&1
"""

# Redis ends the connection behind QUIT, so no program of its own is needed to ask it.
_ASK = r"""
ask() {
  { read -r host && read -r port && read -r password; } <.control || { echo "the instance has no .control"; return 1; }
  {
    printf 'AUTH benchhub %s\r\n' "$password"
    for line; do printf '%s\r\n' "$line"; done
    printf 'QUIT\r\n'
  } | if command -v bash >/dev/null; then
    timeout 10 bash -c 'exec 3<>"/dev/tcp/$1/$2" || exit 1; cat >&3; cat <&3' bash "$host" "$port" 2>&1
  elif command -v nc >/dev/null; then
    timeout 10 nc "$host" "$port" 2>&1
  else
    echo "there is neither bash nor nc on this host to ask Redis with"
  fi
}
"""

READY = f"""
{_ASK}
cd -- "$1" || exit 1
ask PING
"""

EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}{_ASK}
cd -- "$1" || exit 1
ask 'CONFIG GET *' 'INFO server' 'INFO memory' | frame answers
process_frames "$2"
"""
