"""The shell texts that start a job on a host and stay beside it until its end. See `agents.remote.job_commands`."""

from __future__ import annotations

COOKIE_VARIABLE = "BENCHHUB_JOB"
SCOPE_WAIT_S = 5
"""How long systemd may take to give a job its scope; then the job starts without one."""

# look PID: what the kernel says of a process that has not ended. The second field of its line is a name that the
# process chooses, with any character in it, so the line may be several. fields: the same of `stat`, which was read.
# Its longest match takes dash a hundred times as long as the shortest one.
IDENTITY = """
fields() {
  [ -n "$stat" ] || return 1
  stat=${stat#*) }
  case $stat in *') '*) stat=${stat##*) } ;; esac
  set -- $stat
  parent=$2 group=$3 session_of=$4 ticks=${20}
  [ "$1" != Z ]
}
look() {
  ticks='' stat='' line=''
  { while read -r line; do stat="$stat$line "; done </proc/"$1"/stat; } 2>/dev/null
  fields
}
alive() { [ "$1" != 0 ] && look "$1" && [ "$ticks" = "$2" ] && [ "$3" = "$boot" ]; }
read -r boot </proc/sys/kernel/random/boot_id
"""

# cgroup_of PID: the directory of the process's cgroup, if that is the scope `unit`.
SCOPE = """
cgroup_of() {
  { while IFS=: read -r number name path; do
    case $number:$name:$path in 0::*/"$unit" | *:name=systemd:*/"$unit") ;; *) continue ;; esac
    for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
      [ ! -e "$root$path/cgroup.procs" ] || { echo "$root$path"; return; }
    done
  done </proc/"$1"/cgroup; } 2>/dev/null
}
"""

# The last thing before the command, in its process. `token` is taken away by the one that starts it: this, or the
# supervisor when it no longer waits for a scope.
GATE = (
    SCOPE
    + """
unit=$1
[ -z "$unit" ] || { rm token && printf '%-240s\\n' "$(cgroup_of $$)" 1<>scope; } || exit 75
exec setsid sh ./cmd >out.pipe 2>err.pipe
"""
)

# The supervisor: parent of the job, records its exit status. Its directory appears under its name whole, by a rename
# that fails when the name is taken: this is the start token. The pumps drain the output for as long as anybody writes,
# so the job never blocks on a full cap or a full disk and never gets SIGPIPE. They sleep while there is no output. They
# let go of standard output with `exec`, since dash keeps a copy of what a redirected function replaces, and the
# launcher reads the reply until everybody has closed it. What is recorded later was written as blanks before the start
# and is overwritten in place, so that it does not need a disk with room. Without prlimit
# the shell's own limit, in blocks of 512 bytes, bounds the output. `begin` looks at the process at once: a shell that
# waits for any program reaps what has ended.
#
# A scope of systemd holds the job's processes together whatever they do. A user's own manager ends with the last login
# and takes its scopes along, unless the user lingers: then a session of its own is what survives a cut.
SUPERVISOR = (
    IDENTITY
    + """
stage=$1 dir=$2 cookie=$3 cap=$4 gate=$5
record() { printf '%-240s\\n' "$2" 1<>"$1"; }
bounded() {
  command -v prlimit >/dev/null && exec prlimit --core=0 --fsize="$cap" cat
  ulimit -c 0
  ulimit -f $((cap / 512))
  exec cat
}
pump() {
  { (bounded >"$1") || mv "$1.room" "$1.truncated"; cat >/dev/null; } <"$1.pipe"
  rm -f "$1.pipe" "$1.room"
}
begin() {
  env COOKIE_VARIABLE="$cookie" "$@" sh -c "$gate" gate "$unit" </dev/null >/dev/null &
  pid=$!
  look $pid
  meta="$pid ${ticks:-0} $boot"
}
sum() { size=$(wc -c <"$1") sum=$(head -c "$size" "$1" | sha256sum 2>/dev/null); echo "$size ${sum%% *}"; }
look $$
record "$stage/starter" "$$ $ticks $boot $cookie" && sync "$stage/cmd" "$stage/starter" || exit 1
mv -T "$stage" "$dir" || exit 1
cd "$dir" && sync .. || exit 1
(exec >/dev/null; pump out) &
(exec >/dev/null; pump err) &
manager=''
if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
  if [ "$(id -u)" -eq 0 ]; then manager=--system
  elif [ -S "${XDG_RUNTIME_DIR-}/bus" ] && [ -e "/var/lib/systemd/linger/$(id -un)" ]; then manager=--user
  fi
fi
if [ -n "$manager" ]; then
  unit=benchhub-$(printf %.16s "$cookie").scope
  begin systemd-run $manager --scope --quiet --collect --unit="$unit" --property=TasksMax=infinity --
  tries=0
  while [ -e token ] && look $pid && [ $tries -lt SCOPE_LOOKS ]; do sleep 0.05; tries=$((tries + 1)); done
  if rm token 2>/dev/null; then
    kill -KILL $pid 2>/dev/null
    wait $pid
    manager=''
  fi
fi
if [ -z "$manager" ]; then
  unit=''
  rm -f token scope
  begin
fi
record meta.part "$meta" && mv meta.part meta
(cat meta)
exec >/dev/null
wait $pid
status=$?
tries=0
while { [ -p out.pipe ] || [ -p err.pipe ]; } && [ $tries -lt 40 ]; do sleep 0.05; tries=$((tries + 1)); done
set -- $(sum out) - - -
out_sum="$1 $2"
set -- $(sum err) - - -
record sums.part "$out_sum $1 $2" && sync sums.part && mv sums.part sums
printf '%-3s\\n' $status 1<>rc.part && sync rc.part && mv rc.part rc
""".replace("COOKIE_VARIABLE", COOKIE_VARIABLE).replace("SCOPE_LOOKS", str(SCOPE_WAIT_S * 20))
)

# Arguments: the directory, its cookie, the cap, the size of the job's text (which comes in on standard input), and the
# two texts above. It writes nothing outside of its stage, and removes that unless it became the job's directory.
START = (
    IDENTITY
    + """
dir=$1 cookie=$2 cap=$3 size=$4 supervisor=$5 gate=$6
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
cd "$stage" || exit 73
unwritten() { echo "the job could not be written to $dir; is its disk full?" >&2; exit 73; }
cat >cmd || unwritten
[ "$(wc -c <cmd)" -eq "$size" ] || { echo "the text of the job did not arrive whole" >&2; exit 74; }
sh ./cmd check || exit
for name in out err token out.room err.room; do : >$name || unwritten; done
for name in starter scope meta.part sums.part; do printf '%240s\\n' - >$name || unwritten; done
printf '%3s\\n' - >rc.part && mkfifo out.pipe err.pipe || unwritten
reply=$(setsid sh -c "$supervisor" job "$stage" "$dir" "$cookie" "$cap" "$gate" </dev/null 2>log &)
[ -z "$reply" ] || { echo "started $reply"; exit 0; }
[ ! -e "$dir" ] || adopt
cat log >&2
echo "the job could not be started in $dir" >&2
exit 73
"""
)
