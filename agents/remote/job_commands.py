"""The commands that start a job on a host, look at it and end it. Pure: arguments go in, commands come out.

Needs a POSIX sh, coreutils, grep and util-linux on the host; systemd is used where it is. Files of a job directory:

    cmd                          the job as a script that a person can run; checks limits and affinity, then execs
    starter                      identity of the supervisor, there from the first moment of the directory
    meta                         identity of the job's own process
    scope                        the cgroup that holds all of its processes; absent where there is no systemd to make it
    out err                      its output, each at most the cap; out.truncated err.truncated when there was more
    sums                         size and SHA-256 of out, then of err, as they were when the process ended
    rc                           its exit status; appears whole, and only when the process has ended
    log                          what the supervisor itself complained about
"""

from __future__ import annotations

import posixpath
import re

from agents.base.command import Command, script
from agents.remote.job_supervisor import COOKIE_VARIABLE, GATE, IDENTITY, SCOPE, START, SUPERVISOR

START_TIMEOUT_S = 90.0
REAP_S = 60
"""How long after SIGKILL a process may take to be gone."""

_COOKIE = re.compile(r"[A-Za-z0-9_-]{16,128}")

# A record that does not hold what it should (a torn file) counts as not there.
_POLL = (
    IDENTITY
    + """
dir=$1 out_from=$2 err_from=$3 max=$4
[ -e "$dir" ] || { echo absent; exit 0; }
cd "$dir" || exit 1
pid=0 start=0 made='' spid=0 sstart=0 smade=''
[ ! -s starter ] || read -r spid sstart smade cookie <starter
[ ! -s meta ] || read -r pid start made <meta
[ -n "$made" ] || pid=0 start=0 made=$smade
state=dead
if [ -e rc ]; then state=exited
elif alive "$pid" "$start" "$made" || alive "$spid" "$sstart" "$smade"; then state=running
elif [ -e rc ]; then state=exited
fi
rc=-
if [ -s rc ] && read -r line <rc; then
  set -- $(head -c 16 rc | tr '\\000' x)
  [ $# -ne 1 ] || rc=$1
fi
case $rc in *[!0-9]*) rc=- ;; esac
more=no
[ ! -e out.truncated ] && [ ! -e err.truncated ] || more=yes
set -- - - - -
if [ -s sums ] && read -r line <sums; then set -- $line - - - -; fi
out=0 err=0
[ ! -e out ] || out=$(wc -c <out)
[ ! -e err ] || err=$(wc -c <err)
span() { n=$(($1 - $2)); [ $n -le "$3" ] || n=$3; [ $n -ge 0 ] || n=0; }
span "$out" "$out_from" "$max"; n_out=$n
span "$err" "$err_from" "$max"; n_err=$n
echo "$state $rc $pid $start ${made:--} $out $err $more $1 $2 $3 $4 $n_out $n_err"
[ $n_out -eq 0 ] || tail -c +$((out_from + 1)) out | head -c $n_out
[ $n_err -eq 0 ] || tail -c +$((err_from + 1)) err | head -c $n_err
"""
)

# A process is of the job when its cookie, its session, its cgroup or its parent says so; once found it stays found,
# whatever it does to hide. The supervisor and its pumps have none of these, so the exit status and the last output of a
# killed job are kept. Each process gets one TERM; CONT lets a stopped one act on it. KILL goes to whole process groups
# and to the cgroup as well: processes that keep forking are gone before a scan could name them. One grep reads all of
# them and says of each line whose it is: a shell reads byte by byte, which for all processes is what takes long.
_KILL = (
    IDENTITY
    + SCOPE
    + """
dir=$1 grace=$2 cookie=$3
newline='
'
spid=0 sstart=0 session=0 start=0 cgroup=''
if [ -e "$dir" ]; then
  cd "$dir" || exit 1
  if [ -s starter ] && read -r a b c d <starter && [ -n "$d" ]; then
    [ "$c" = "$boot" ] || exit 0
    spid=$a sstart=$b cookie=$d
  fi
  [ -n "$cookie" ] || { echo "nothing in $dir tells which processes are of this job" >&2; exit 1; }
  while [ ! -s meta ] && alive "$spid" "$sstart" "$boot"; do sleep 0.05; done
  if [ -s meta ] && read -r a b c <meta && [ "$c" = "$boot" ]; then session=$a start=$b; fi
  [ ! -s scope ] || read -r cgroup <scope
else
  [ -n "$cookie" ] && cd / || exit 0
fi
unit=benchhub-$(printf %.16s "$cookie").scope
case $cgroup in /sys/fs/cgroup/*/"$unit") ;; *) cgroup='' ;; esac
take() {
  left="$left $pid"
  case $seen in *" $pid:$ticks "*) ;; *) seen="$seen$pid:$ticks " ;; esac
  case "$spid $groups " in *" $group "* | "$group "*) ;; *) groups="$groups $group" ;; esac
}
sort_out() {
  fields || return
  case "$marked$seen" in
    *" $pid "* | *" $pid:$ticks "*) take ;;
    *) if [ "$session_of" = "$own" ]; then take; else others="$others $pid:$parent:$ticks:$group"; fi ;;
  esac
}
find_left() {
  left='' groups='' others='' marked=' '
  for pid in $(grep -lsF -- "COOKIE_VARIABLE=$cookie" /proc/[0-9]*/environ); do
    pid=${pid#/proc/} marked="$marked${pid%/environ} "
  done
  set -- $marked
  [ -n "$cgroup" ] || [ $# -eq 0 ] || cgroup=$(cgroup_of "$1")
  if [ -n "$cgroup" ]; then
    for pid in $(cat "$cgroup"/cgroup.procs "$cgroup"/*/cgroup.procs 2>/dev/null); do marked="$marked$pid "; done
  fi
  own=$session
  [ "$session" -gt 1 ] && { ! look "$session" || [ "$ticks" = "$start" ]; } || own=none
  lines=$(LC_ALL=C grep -as '' /proc/[0-9]*/stat /dev/null)
  set -f
  IFS=$newline
  set -- $lines
  unset IFS
  set +f
  pid=''
  for line do
    of=${line#/proc/} of=${of%%/*}
    if [ "$of" = "$pid" ]; then stat="$stat ${line#*:}"; continue; fi
    [ -z "$pid" ] || sort_out
    pid=$of stat=${line#*:}
  done
  [ -z "$pid" ] || sort_out
  more=yes
  while [ -n "$left" ] && [ -n "$more" ]; do
    more='' rest=''
    for other in $others; do
      parent=${other#*:}
      case "$left " in
        *" ${parent%%:*} "*)
          pid=${other%%:*} group=${other##*:} ticks=${parent#*:}
          ticks=${ticks%:*} more=yes
          take ;;
        *) rest="$rest $other" ;;
      esac
    done
    others=$rest
  done
}
clock() { read -r up rest </proc/uptime; up=${up%?}; tenths=${up%.*}${up#*.}; }
seen=' ' told=' '
clock
until_tenths=$((tenths + grace * 10))
while find_left; clock; [ -n "$left" ] && [ $tenths -lt $until_tenths ]; do
  for pid in $left; do
    case $told in *" $pid "*) continue ;; esac
    kill -TERM "$pid" 2>/dev/null
    kill -CONT "$pid" 2>/dev/null
    told="$told$pid "
  done
  sleep 0.1
done
until_tenths=$((tenths + REAP_TENTHS))
[ "$own" = none ] || kill -s KILL -- "-$own" 2>/dev/null
[ -z "$cgroup" ] || [ ! -w "$cgroup/cgroup.kill" ] || echo 1 >"$cgroup/cgroup.kill"
while find_left; clock; [ -n "$left" ] && [ $tenths -lt $until_tenths ]; do
  for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
  kill -KILL $left 2>/dev/null
  sleep 0.1
done
tries=300
while [ ! -e rc ] && alive "$spid" "$sstart" "$boot" && [ -z "$left" ] && [ $tries -gt 0 ]; do
  sleep 0.1
  tries=$((tries - 1))
done
for pid in $left; do echo "$pid $(cat /proc/"$pid"/comm 2>/dev/null)"; done
""".replace("COOKIE_VARIABLE", COOKIE_VARIABLE).replace("REAP_TENTHS", str(REAP_S * 10))
)


def start_command(directory: str, job: str, *, cookie: str, max_output_bytes: int) -> Command:
    """Starts the job, text of `job_script`, once. Prints "started|already PID START_TICKS BOOT_ID".

    ValueError: the cookie is not one.
    """
    if not _COOKIE.fullmatch(cookie):
        raise ValueError("a cookie is 16 to 128 letters, digits, _ and -")
    body = job.encode("utf-8", "surrogateescape")
    args = (job_directory(directory), cookie, str(max_output_bytes), str(len(body)), SUPERVISOR, GATE)
    return script(START, *args, stdin=body, timeout_s=START_TIMEOUT_S)


def poll_command(directory: str, *, out_offset: int = 0, err_offset: int = 0, max_bytes: int = 0) -> Command:
    """Prints one line of state, then at most `max_bytes` of each output from its offset."""
    return script(_POLL, job_directory(directory), str(out_offset), str(err_offset), str(max_bytes))


def kill_command(directory: str, grace_s: int, cookie: str = "") -> Command:
    """Ends every process of the job; prints "PID NAME" of those that are left.

    `cookie` finds them when somebody removed the job's directory; without it such a job counts as never started.
    """
    return script(_KILL, job_directory(directory), str(grace_s), cookie, timeout_s=grace_s + REAP_S + START_TIMEOUT_S)


def job_directory(path: str) -> str:
    """`path` when a job may live there, else ValueError: it is created and its failed stages are removed whole."""
    if not path.startswith("/") or posixpath.normpath(path) != path or path.count("/") < 2:
        raise ValueError(f"'{path}' is not a plain absolute path below a directory")
    return path
