"""What runs on the SUT for PostgreSQL, in POSIX sh; all that varies comes in as arguments."""

from __future__ import annotations

from agents.servers.base.frames import FRAME
from agents.servers.base.process import PROCESS_FRAMES
from agents.servers.postgresql.configuration import LOAD, SUPERUSER

# PostgreSQL refuses to run as root. In a user namespace root's processes and files have the name of another account:
# root's files stay open to it, as the instance has to be; all other rights of root are gone. Every Linux has `daemon`.
BIN = """
unset PGOPTIONS PGSERVICE PGSERVICEFILE PGHOST PGHOSTADDR PGPORT PGDATABASE PGUSER PGDATA PGAPPNAME PGCLIENTENCODING
bin=$1
if [ -z "$bin" ] && command -v postgres >/dev/null && command -v initdb >/dev/null; then
  bin=$(dirname -- "$(readlink -f -- "$(command -v postgres)")")
fi
if [ -z "$bin" ]; then
  bin=$(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin 2>/dev/null | sort -V | tail -n 1)
fi
for program in postgres initdb psql pg_ctl pg_controldata; do
  [ -x "$bin/$program" ] && continue
  echo "there is no $program in ${bin:-the usual places}: install PostgreSQL's server, or correct bin_dir" >&2
  exit 1
done
no_root=
if [ "$(id -u)" = 0 ]; then no_root="unshare --user --map-user=$(id -u daemon) --map-group=$(id -g daemon) --"; fi
"""

VERSION = f"""
{BIN}
prepared=$2
if [ -n "$no_root" ] && ! $no_root true 2>/dev/null; then
  echo "PostgreSQL does not run as root, and this host has no user namespaces: let BenchHub log in as another user" >&2
  exit 1
fi
if [ -n "$3" ] && [ ! -x "$bin/pgbench" ]; then
  echo "there is no pgbench in $bin, which pgbench_scale needs: install it" >&2; exit 1
fi
if [ -n "$prepared" ]; then
  if [ ! -r "$prepared/PG_VERSION" ] || [ ! -x "$prepared/base" ]; then
    echo "$prepared is no data directory of PostgreSQL, or $(id -un) may not read it" >&2; exit 1
  fi
  printf 'prepared %s\\n' "$(cat "$prepared/PG_VERSION")"
fi
"$bin/postgres" --version
"""

# Hard links would do for no file: PostgreSQL writes into its files where they are. A reflink shares blocks until then.
_COPY = """
told() { "$bin/pg_controldata" -D "$prepared" | sed -n "s/^$1: *//p"; }
state=$("$bin/pg_controldata" -D "$prepared" 2>&1 | sed -n 's/^Database cluster state: *//p')
if [ -e "$prepared/postmaster.pid" ] || [ "$state" != "shut down" ]; then
  echo "$prepared is in use or was not shut down (${state:-unknown}): stop its server first" >&2; exit 1
fi
if [ -L "$prepared/pg_wal" ] || [ -n "$(ls -A "$prepared/pg_tblspc")" ]; then
  echo "$prepared has its log or tablespaces elsewhere: a copy would write into them" >&2; exit 1
fi
cp -RP --reflink=auto -- "$prepared" data || cp -RP -- "$prepared" data
rm -f data/postmaster.opts data/standby.signal data/recovery.signal
: >data/postgresql.auto.conf
sync -f data 2>/dev/null || :
[ -n "$there" ] ||
  echo "state $(told 'Database system identifier') at $(told 'Latest checkpoint location')" >data.origin
"""

# What decides what the data are names them: one set for each version, scale and SQL, wherever it is asked for.
_KEPT = """
checksum() { (cd -- "$1" && find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2 | sha256sum | cut -d ' ' -f 1); }
sets=$HOME/.benchhub/data there= kept=
if [ -n "$keep" ]; then
  [ -f prepare.sql ] && sql=prepare.sql || sql=/dev/null
  made_of=$(printf '%s\\n' 1 "$("$bin/postgres" --version)" "$scale" "$checksums" | cat - "$sql" | sha256sum)
  kept=$sets/postgresql-$(printf %.32s "$made_of")
fi
if [ -d "$kept" ]; then
  sum=$(cat "$kept/sha256")
  if [ "$(checksum "$kept/data")" != "$sum" ]; then
    echo "the data that earlier runs kept are not the same any more: remove $kept, and they are made anew" >&2; exit 1
  fi
  touch "$kept"
  prepared=$kept/data there=yes
fi
"""

# A set that is not whole has another name. Those that nobody has used for a month go.
_KEEP = """
mkdir -p -- "$sets"
find "$sets" -mindepth 1 -maxdepth 1 -name 'postgresql-*' -mtime +30 -exec rm -rf {} +
rm -rf -- "$kept.part"
mkdir -- "$kept.part"
cp -RP --reflink=auto -- data "$kept.part/data" || cp -RP -- data "$kept.part/data"
sum=$(checksum "$kept.part/data")
echo "$sum" >"$kept.part/sha256"
sync -f "$kept.part" 2>/dev/null || :
mv -T -- "$kept.part" "$kept"
"""

_ACCOUNTS = f"""
set +e
: >none.conf
$no_root "$bin/postgres" --single -D "$PWD/data" -c config_file="$PWD/none.conf" postgres >accounts.log 2>&1 <<END
CREATE ROLE {LOAD} LOGIN
ALTER ROLE {LOAD} LOGIN NOSUPERUSER NOCREATEROLE NOREPLICATION NOBYPASSRLS
REVOKE pg_execute_server_program, pg_read_server_files, pg_write_server_files FROM {LOAD}
CREATE DATABASE {LOAD} OWNER {LOAD}
END
made=$?
set -e
[ "$made" = 0 ] || {{ grep -E "FATAL|ERROR" accounts.log | tail -n 1 >&2; exit 1; }}
"""
"""What is there already in a prepared directory is an error that single-user mode says and goes on."""

ASK = f"""
ask() {{ "$bin/psql" -X -At -h /proc/self/cwd -p "$port" "$@" 2>&1; }}
as_superuser() {{ ask -U {SUPERUSER} -d postgres -c "$1"; }}
"""
"""In the instance directory: its path may be too long for a socket's, `/proc/self/cwd` never is."""

# If nobody is left to stop it, the server ends by itself: within a minute of its directory's removal.
_LOAD_DATA = f"""
stop() {{ $no_root "$bin/pg_ctl" -D "$PWD/data" -m "$1" -t 900 -w stop >/dev/null; }}
trap 'stop immediate || :' EXIT
trap 'exit 1' HUP INT TERM
$no_root "$bin/postgres" -D "$PWD/data" -c config_file="$PWD/postgresql.conf" -c hba_file="$PWD/pg_hba.conf" \\
  -c listen_addresses= >prepare.log 2>&1 &
tries=600
until as_superuser 'SELECT 1' >/dev/null; do
  tries=$((tries - 1))
  if [ $tries = 0 ] || ! kill -0 $! 2>/dev/null; then
    echo "PostgreSQL did not start to load data: $(tail -n 1 prepare.log)" >&2; exit 1
  fi
  sleep 0.1
done
if [ -n "$scale" ]; then
  "$bin/pgbench" -i -q -s "$scale" -h /proc/self/cwd -p "$port" -U {LOAD} {LOAD} >pgbench.log 2>&1 ||
    {{ tail -n 2 pgbench.log >&2; exit 1; }}
fi
if [ -f prepare.sql ]; then
  ask -v ON_ERROR_STOP=1 -q -U {LOAD} -d {LOAD} -f prepare.sql >sql.log || {{ tail -n 2 sql.log >&2; exit 1; }}
fi
as_superuser 'VACUUM ANALYZE' >/dev/null
trap - EXIT
stop fast || {{ echo "PostgreSQL did not stop after its data was loaded" >&2; exit 1; }}
wait
"""

CREATE = f"""
{BIN}{ASK}
port=$2 prepared=$3 scale=$4 checksums=$5 keep=$6
{_KEPT}
if [ -n "$prepared" ]; then
{_COPY}
else
  # From version 18 on initdb makes checksums unless told otherwise.
  none=--no-data-checksums
  if [ -z "$checksums" ] && "$bin/initdb" --help | grep -q -e "$none"; then checksums=$none; fi
  $no_root "$bin/initdb" -D "$PWD/data" -U {SUPERUSER} -A trust -E UTF8 --locale=C $checksums >initdb.log 2>&1 ||
    {{ tail -n 2 initdb.log >&2; exit 1; }}
fi
if [ -z "$there" ]; then
{_ACCOUNTS}
fi
if [ -z "$there" ] && {{ [ -n "$scale" ] || [ -f prepare.sql ]; }}; then
{_LOAD_DATA}
fi
if [ -n "$keep" ] && [ -z "$there" ]; then
{_KEEP}
fi
[ -z "$keep" ] || echo "sha256 $sum" >data.origin
"""

START = f"""
{BIN}
cd -- "$2" || exit 1
exec $no_root "$bin/postgres" -D "$PWD/data" -c config_file="$PWD/postgresql.conf" -c hba_file="$PWD/pg_hba.conf" 2>&1
"""

READY = f"""
{BIN}{ASK}
port=$3
cd -- "$2" || exit 1
as_superuser CHECKPOINT
"""

EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}{BIN}{ASK}
port=$3
cd -- "$2" || exit 1
as_superuser "$5" | frame settings
cat data.origin 2>/dev/null | frame data
process_frames "$4"
"""
