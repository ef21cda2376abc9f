"""The shell texts that keep a job on a host. Pure: what goes in are arguments, what comes out are commands.

Needs a POSIX sh, coreutils, grep and util-linux on the host. Files of a job directory:

    cmd                          the job as a script that a person can run; checks limits and affinity, then execs
    starter                      identity of the supervisor, there from the first moment of the directory
    meta                         identity of the job's own process
    out err                      its output, each at most the cap; out.truncated err.truncated when there was more
    rc                           its exit status; appears whole, and only when the process has ended
    log                          what the supervisor itself complained about
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping

from agents.command import Command, script
from agents.cpuset import format_cpus, parse_cpus
from agents.errors import PlanError

COOKIE_VARIABLE = "BENCHHUB_JOB"
START_TIMEOUT_S = 30.0
REAP_S = 5
"""How long after SIGKILL a process may take to be gone."""

LIMITS = frozenset(
    (
        "as",
        "core",
        "cpu",
        "data",
        "fsize",
        "locks",
        "memlock",
        "msgqueue",
        "nice",
        "nofile",
        "nproc",
        "rss",
        "rtprio",
        "rttime",
        "sigpending",
        "stack",
    )
)
"""Limits that can be set: the names of prlimit(1)."""

_COOKIE = re.compile(r"[A-Za-z0-9_-]{16,128}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_SET_LIMIT = """
set_limit() {
  prlimit --pid $$ "--$1=$2:$2" 2>/dev/null && return
  hard=$(prlimit --pid $$ "--$1" -o HARD --noheadings | tr -d ' ')
  echo "cannot set the limit $1 to $2: the hard limit of this login is $hard" >&2
  exit 78
}
"""

_SET_AFFINITY = """
set_affinity() {
  taskset -cp "$1" $$ >/dev/null || { echo "cannot run on the CPUs $1" >&2; exit 78; }
  have=
  while read -r key value; do [ "$key" != Cpus_allowed_list: ] || have=$value; done </proc/$$/status
  [ "$have" = "$1" ] || { echo "asked for the CPUs $1, but the host gives only $have" >&2; exit 78; }
}
"""

_IDENTITY = """
ticks_of() {
  ticks='' stat=''
  { read -r stat </proc/"$1"/stat; } 2>/dev/null
  [ -n "$stat" ] || return 1
  set -- ${stat##*) }
  [ "$1" != Z ] || return 1
  ticks=${20}
}
alive() { [ "$1" != 0 ] && ticks_of "$1" && [ "$ticks" = "$2" ] && [ "$3" = "$boot" ]; }
boot=$(cat /proc/sys/kernel/random/boot_id)
"""

# The supervisor: parent of the job, records its exit status. Its directory appears under its name whole, by a rename
# that fails when the name is taken: this is the start token. The pumps drain the output for as long as anybody writes,
# so the job never blocks on a full cap or a full disk and never gets SIGPIPE. They sleep while there is no output. They
# let go of standard output with `exec`, since dash keeps a copy of what a redirected function replaces, and the
# launcher reads the reply until everybody has closed it.
# Where systemd is, `systemd-run --scope` in front of `setsid sh ./cmd` would add a cgroup.
_SUPERVISOR = (
    _IDENTITY
    + """
stage=$1 dir=$2 cookie=$3 cap=$4
pump() {
  { prlimit --core=0 --fsize="$cap" cat >"$1" || : >"$1.truncated"; cat >/dev/null; } <"$1.pipe"
  rm -f "$1.pipe"
}
ticks_of $$
echo "$$ $ticks $boot $cookie" >"$stage/starter" && : >"$stage/out" && : >"$stage/err" || exit 1
mkfifo "$stage/out.pipe" "$stage/err.pipe" && sync "$stage/cmd" "$stage/starter" || exit 1
mv -T "$stage" "$dir" || exit 1
cd "$dir" && sync .. || exit 1
(exec >/dev/null; pump out) &
(exec >/dev/null; pump err) &
COOKIE_VARIABLE="$cookie" setsid sh ./cmd </dev/null >out.pipe 2>err.pipe &
pid=$!
{ read -r stat </proc/$pid/stat; }
set -- ${stat##*) }
echo "$pid ${20} $boot" >meta.part && mv meta.part meta
(cat meta)
exec >/dev/null
wait $pid
status=$?
tries=0
while { [ -p out.pipe ] || [ -p err.pipe ]; } && [ $tries -lt 40 ]; do sleep 0.05; tries=$((tries + 1)); done
echo $status >rc.part && sync rc.part && mv rc.part rc
""".replace("COOKIE_VARIABLE", COOKIE_VARIABLE)
)

_START = (
    _IDENTITY
    + """
dir=$1 cookie=$2 cap=$3 size=$4 supervisor=$5
stage=$dir.$$
adopt() {
  while [ ! -s "$dir/meta" ] && read -r pid ticks0 boot0 cookie0 <"$dir/starter" && alive "$pid" "$ticks0" "$boot0"; do
    sleep 0.05
  done
  echo "already $(cat "$dir/meta" 2>/dev/null)"
  exit 0
}
umask 077
[ ! -e "$dir" ] || adopt
mkdir -p -- "${dir%/*}" && mkdir -- "$stage" || exit 73
trap 'rm -rf -- "$stage"' EXIT
cat >"$stage/cmd"
[ "$(wc -c <"$stage/cmd")" -eq "$size" ] || { echo "the text of the job did not arrive whole" >&2; exit 74; }
sh "$stage/cmd" check || exit
reply=$(setsid sh -c "$supervisor" job "$stage" "$dir" "$cookie" "$cap" </dev/null 2>"$stage/log" &)
[ -z "$reply" ] || { echo "started $reply"; exit 0; }
[ ! -e "$dir" ] || adopt
cat "$stage/log" >&2
echo "the job could not be started in $dir" >&2
exit 73
"""
)

_POLL = (
    _IDENTITY
    + """
dir=$1
[ -e "$dir" ] || { echo absent; exit 0; }
cd "$dir" || exit 1
pid=0 start=0 made=- spid=0 sstart=0 smade=-
[ ! -s meta ] || read -r pid start made <meta
[ ! -s starter ] || read -r spid sstart smade cookie <starter
[ "$made" != - ] || made=$smade
state=dead
if [ -e rc ]; then state=exited
elif alive "$pid" "$start" "$made" || alive "$spid" "$sstart" "$smade"; then state=running
elif [ -e rc ]; then state=exited
fi
rc=$(head -c 16 rc 2>/dev/null)
case $rc in '' | *[!0-9]*) rc=- ;; esac
more=no
[ ! -e out.truncated ] && [ ! -e err.truncated ] || more=yes
out=0 err=0
[ ! -e out ] || out=$(wc -c <out)
[ ! -e err ] || err=$(wc -c <err)
span() { n=$(($1 - $2)); [ $n -le "$3" ] || n=$3; [ $n -ge 0 ] || n=0; }
span "$out" "$2" "$4"; n_out=$n
span "$err" "$3" "$4"; n_err=$n
echo "$state $rc $pid $start $made $out $err $more $n_out $n_err"
[ $n_out -eq 0 ] || tail -c +$(($2 + 1)) out | head -c $n_out
[ $n_err -eq 0 ] || tail -c +$(($3 + 1)) err | head -c $n_err
"""
)

# The supervisor and its pumps are in another session and carry no cookie: they are spared, so that the exit status and
# the last output of a killed job are kept. Each process gets one TERM; CONT lets a stopped one act on it.
_KILL = (
    _IDENTITY
    + """
dir=$1 grace=$2 cookie=$3
spid=0 sstart=0 session=0 start=0
if [ -e "$dir" ]; then
  cd "$dir" && read -r spid sstart made cookie <starter || exit 1
  [ "$made" = "$boot" ] || exit 0
  while [ ! -s meta ] && alive "$spid" "$sstart" "$made"; do sleep 0.05; done
  [ ! -s meta ] || read -r session start made <meta
else
  [ -n "$cookie" ] && cd / || exit 0
fi
find_left() {
  left=''
  for file in $(grep -lsF -- "COOKIE_VARIABLE=$cookie" /proc/[0-9]*/environ); do
    pid=${file#/proc/} pid=${pid%/environ}
    ! ticks_of "$pid" || left="$left $pid"
  done
  [ "$session" -gt 1 ] || return
  ! ticks_of "$session" || [ "$ticks" = "$start" ] || return
  for file in /proc/[0-9]*/stat; do
    stat=''
    { read -r stat <"$file"; } 2>/dev/null
    [ -n "$stat" ] || continue
    set -- ${stat##*) }
    [ "$4" = "$session" ] && [ "$1" != Z ] || continue
    pid=${file#/proc/} pid=${pid%/stat}
    case " $left " in *" $pid "*) ;; *) left="$left $pid" ;; esac
  done
}
told=' '
tries=$((grace * 10))
while find_left; [ -n "$left" ] && [ $tries -gt 0 ]; do
  for pid in $left; do
    case $told in *" $pid "*) continue ;; esac
    kill -TERM "$pid" 2>/dev/null
    kill -CONT "$pid" 2>/dev/null
    told="$told$pid "
  done
  sleep 0.1
  tries=$((tries - 1))
done
tries=REAP_TENTHS
while find_left; [ -n "$left" ] && [ $tries -gt 0 ]; do
  kill -KILL $left 2>/dev/null
  sleep 0.1
  tries=$((tries - 1))
done
tries=50
while [ ! -e rc ] && alive "$spid" "$sstart" "$boot" && [ -z "$left" ] && [ $tries -gt 0 ]; do
  sleep 0.1
  tries=$((tries - 1))
done
for pid in $left; do echo "$pid $(cat /proc/"$pid"/comm 2>/dev/null)"; done
""".replace("COOKIE_VARIABLE", COOKIE_VARIABLE).replace("REAP_TENTHS", str(REAP_S * 10))
)


def job_script(
    argv: tuple[str, ...], *, environment: Mapping[str, str], cwd: str | None, limits: Mapping[str, int], cpus: str
) -> str:
    """The text of `cmd`: sets up its own process, then becomes the command. With the argument `check` it stops before.

    It exits 78 when a limit, the affinity or the directory cannot be had exactly as asked. PlanError names what can
    never be right on any host.
    """
    lines = ["#!/bin/sh"]
    if limits:
        lines.append(_SET_LIMIT.strip())
        lines += [f"set_limit {_limit_name(name)} {_limit_value(name, limits[name])}" for name in sorted(limits)]
    if cpus:
        lines += [_SET_AFFINITY.strip(), f"set_affinity {format_cpus(parse_cpus(cpus))}"]
    lines.append(f"cd {shlex.quote(cwd)} || exit 78" if cwd else "cd || exit 78")
    lines.append('[ "${1-}" != check ] || exit 0')
    lines += [f"export {_variable(name)}={shlex.quote(environment[name])}" for name in sorted(environment)]
    lines.append(f"exec {shlex.join(argv)}")
    text = "\n".join(lines) + "\n"
    if "\0" in text:
        raise PlanError("A command, its directory and its environment cannot contain a NUL character.")
    return text


def start_command(directory: str, job: str, *, cookie: str, max_output_bytes: int) -> Command:
    """Starts the job, text of `job_script`, once. Prints "started|already PID START_TICKS BOOT_ID"."""
    if not _COOKIE.fullmatch(cookie):
        raise ValueError("a cookie is 16 to 128 letters, digits, _ and -")
    body = job.encode("utf-8", "surrogateescape")
    args = (job_directory(directory), cookie, str(max_output_bytes), str(len(body)), _SUPERVISOR)
    return script(_START, *args, stdin=body, timeout_s=START_TIMEOUT_S)


def poll_command(directory: str, *, out_offset: int = 0, err_offset: int = 0, max_bytes: int = 0) -> Command:
    """Prints one line of state, then at most `max_bytes` of each output from its offset."""
    return script(_POLL, job_directory(directory), str(out_offset), str(err_offset), str(max_bytes))


def kill_command(directory: str, grace_s: int, cookie: str = "") -> Command:
    """Ends every process of the job; prints "PID NAME" of those that are left.

    `cookie` finds them when somebody removed the job's directory; without it such a job counts as never started.
    """
    return script(_KILL, job_directory(directory), str(grace_s), cookie, timeout_s=grace_s + REAP_S + 20.0)


def job_directory(path: str) -> str:
    """`path` when a job may live there, else ValueError: it is created and its failed stages are removed whole."""
    if not path.startswith("/") or posixpath.normpath(path) != path or path.count("/") < 2:
        raise ValueError(f"'{path}' is not a plain absolute path below a directory")
    return path


def _limit_name(name: str) -> str:
    if name not in LIMITS:
        raise PlanError(f"There is no limit '{name}'.", hint=f"Known limits: {', '.join(sorted(LIMITS))}.")
    return name


def _limit_value(name: str, value: int) -> int:
    if value < 0:
        raise PlanError(f"The limit {name} cannot be {value}.", hint="Use a number from 0 up.")
    return value


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise PlanError(f"'{name}' is not a name of an environment variable.")
    return name
