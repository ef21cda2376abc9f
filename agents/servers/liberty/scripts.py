"""What runs on the SUT for Liberty, in POSIX sh; all that varies comes in as arguments."""

from __future__ import annotations

from agents.base.readable import CLOSED, open_up
from agents.formats.gc_log import GC_LOG_OPTION
from agents.servers.base.frames import FRAME
from agents.servers.base.process import PROCESS_FRAMES

JAVA = """
if [ -n "$java_home" ]; then java=$java_home/bin/java; else java=$(command -v java); fi
if [ ! -x "$java" ]; then
  echo "no Java at ${java_home:-the PATH}: install Java 17 or later, or set java_home" >&2; exit 1
fi
# Of the login: bin/server would evaluate them, or take another Java or another server for them.
unset JVM_ARGS JVM_OPTIONS_QUOTED JAVA_DEBUG JRE_HOME IBM_JAVA_OPTIONS OPENJ9_JAVA_OPTIONS WLP_OUTPUT_DIR
unset WLP_DEFAULT_JAVA_HOME WLP_SKIP_BOOTSTRAP_AGENT SERVER_WORKING_DIR LOG_FILE PID_DIR PID_FILE
if [ -n "$java_home" ]; then export JAVA_HOME="$java_home"; else unset JAVA_HOME; fi
"""

VERSION = f"""
home=$1 java_home=$2
shift 2
{CLOSED}
for file in bin/server bin/tools/ws-server.jar; do
  shut=$(closed "$home/$file")
  if [ -n "$shut" ]; then
    echo "$(id -un) may not read $shut of the Liberty at $home; mend it with: {open_up("$home")}" >&2; exit 1
  fi
done
if [ ! -x "$home/bin/server" ] || [ ! -f "$home/bin/tools/ws-server.jar" ]; then
  echo "there is no Liberty at $home (bin/server and bin/tools/ws-server.jar are needed)" >&2; exit 1
fi
if grep -qsE '^(WLP_USER_DIR|WLP_OUTPUT_DIR|LOG_DIR)=' "$home/etc/server.env"; then
  echo "$home/etc/server.env sets WLP_USER_DIR, WLP_OUTPUT_DIR or LOG_DIR, so no run could have its own" >&2; exit 1
fi
for app; do
  [ -r "$app" ] || {{ echo "there is no web application at $app, or it cannot be read" >&2; exit 1; }}
done
{JAVA}
unset WLP_USER_DIR LOG_DIR
"$java" -version 2>&1
"$home/bin/server" version 2>&1 || :
"""

START = f"""
{GC_LOG_OPTION}
home=$1 java_home=$2 name=$4
cd -- "$3" || exit 1
shift 4
{JAVA}
mkdir -p logs || exit 1
overrides=usr/servers/$name/configDropins/overrides
mkdir -p "$overrides" || exit 1
defaults=usr/servers/$name/configDropins/defaults
mkdir -p "$defaults" || exit 1
gc_log=$(gc_log_option "$java" "$PWD/logs/gc.log")
if [ -n "$gc_log" ]; then printf '%s\\n' "$gc_log" >>"$defaults/jvm.options" || exit 1; fi
if [ $# -gt 0 ]; then printf '%s\\n' "$@" >"$overrides/jvm.options" || exit 1; fi
exec "$home/bin/server" run "$name" >>logs/messages.log 2>&1
"""

EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}
cat "$1/server.xml" | frame server_xml
for file in "$1"/configDropins/*/*.xml; do
  kind=${{file%/*}}
  case ${{file##*/}} in *[!A-Za-z0-9_.-]*) continue;; esac
  if [ -f "$file" ]; then cat "$file" | frame "config:${{kind##*/}}/${{file##*/}}"; fi
done
cat "$1/configDropins/defaults/jvm.options" "$1/jvm.options" "$1/configDropins/overrides/jvm.options" 2>/dev/null |
  frame jvm_options
cat "$1/bootstrap.properties" 2>/dev/null | frame bootstrap_properties
process_frames "$2"
"""
