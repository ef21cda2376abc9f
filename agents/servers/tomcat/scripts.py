"""What runs on the SUT for Tomcat, in POSIX sh and awk; all that varies comes in as arguments."""

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
"""

VERSION = f"""
home=$1 java_home=$2
{CLOSED}
for file in bin/catalina.sh lib/catalina.jar conf/server.xml; do
  shut=$(closed "$home/$file")
  if [ -n "$shut" ]; then
    echo "$(id -un) may not read $shut of the Tomcat at $home; mend it with: {open_up("$home")}" >&2; exit 1
  fi
done
if [ ! -f "$home/lib/catalina.jar" ] || [ ! -x "$home/bin/catalina.sh" ]; then
  echo "there is no Tomcat at $home (bin/catalina.sh and lib/catalina.jar are needed)" >&2; exit 1
fi
if [ ! -e "$home/conf" ]; then
  echo "the Tomcat at $home has no conf beside it, as packages of Debian do: unpack Apache's own archive" >&2; exit 1
fi
{JAVA}
"$java" -version 2>&1
"$java" -cp "$home/lib/catalina.jar" org.apache.catalina.util.ServerInfo 2>&1 || :
"""

KEY_STORE, KEY_PASSWORD = "conf/self-signed.p12", "changeit"
"""Tomcat's own default password: who may read the file may read server.xml beside it."""

# Sets the ports in server.xml, and the address where one is given. Comments are passed by: an example in a comment
# is not the connector.
PORTS = r"""
{ text = text $0 "\n" }
END {
  quoted = "\"[^\"]*\"|\047[^\047]*\047"
  while ((at = index(text, "<")) > 0) {
    printf "%s", substr(text, 1, at - 1)
    text = substr(text, at)
    if (substr(text, 1, 4) == "<!--") {
      size = index(text, "-->") + 2
      if (size == 2) size = length(text)
    } else if (match(text, "^<([^<>\"\047]|" quoted ")*>")) size = RLENGTH
    else size = 1
    tag = substr(text, 1, size)
    text = substr(text, size + 1)
    if (tag ~ /^<Server[ \t\r\n>]/) tag = with_value(tag, "port", "-1")
    else if (!done && tag ~ /^<Connector[ \t\r\n\/>]/ && tag !~ /AJP|Ajp|SSLEnabled *= *["\047]true/) {
      tag = with_value(tag, "port", port)
      if (address) tag = with_value(tag, "address", address)
      if (tls) tag = with_tls(tag)
      done = 1
    }
    printf "%s", tag
  }
  printf "%s", text
  exit !done
}
function with_value(tag, name, value) {
  if (match(tag, "[ \t\r\n]" name "[ \t\r\n]*=[ \t\r\n]*(" quoted ")"))
    return substr(tag, 1, RSTART) name "=\"" value "\"" substr(tag, RSTART + RLENGTH)
  match(tag, /^<[A-Za-z]+/)
  return substr(tag, 1, RLENGTH) " " name "=\"" value "\"" substr(tag, RLENGTH + 1)
}
function with_tls(tag,  empty) {
  empty = sub(/[ \t\r\n]*\/>$/, "", tag) || !sub(/>$/, "", tag)
  tag = tag " SSLEnabled=\"true\" scheme=\"https\" secure=\"true\">" \
    "<SSLHostConfig><Certificate certificateKeystoreFile=\"" store "\" certificateKeystorePassword=\"" password \
    "\" type=\"RSA\"/></SSLHostConfig>"
  return empty ? tag "</Connector>" : tag
}
"""

CREATE = f"""
set -eu
umask 077
home=$1 java_home=$2 instance=$3 port=$4 address=$5 examples=$6 tls=$7 ports=$8
shift 8
mkdir -p -- "$(dirname -- "$instance")"
mkdir -- "$instance"
cd -- "$instance"
mkdir logs temp work webapps
cp -R -- "$home/conf" conf
chmod -R u+rwX conf
awk -v port="$port" -v address="$address" -v tls="$tls" -v store={KEY_STORE} -v password={KEY_PASSWORD} \\
  "$ports" "$home/conf/server.xml" >conf/server.xml ||\\
  {{ echo "$home/conf/server.xml has no plain HTTP connector to set the port of" >&2; exit 1; }}
if [ -n "$tls" ]; then
{JAVA}
  "${{java%java}}keytool" -genkeypair -keystore {KEY_STORE} -storetype PKCS12 -storepass {KEY_PASSWORD} -alias tomcat \\
    -keyalg RSA -keysize 2048 -validity 30 -dname CN=BenchHub >/dev/null 2>&1 ||
    {{ echo "keytool beside $java could not make a key" >&2; exit 1; }}
fi
for app; do
  case $app in /*) source=$app;; *) source=$home/webapps/$app;; esac
  [ -e "$source" ] || source=$source.war
  [ -e "$source" ] || {{ echo "there is no web application $app in $home/webapps" >&2; exit 1; }}
  cp -R -- "$source" webapps/
done
if [ -n "$examples" ]; then
  [ -d "$home/webapps/examples" ] || {{ echo "$home has no examples web application" >&2; exit 1; }}
  mkdir -p conf/Catalina/localhost
  cat >conf/Catalina/localhost/examples.xml
fi
"""

START = f"""
{GC_LOG_OPTION}
home=$1 java_home=$2
cd -- "$3" || exit 1
{JAVA}
gc_log=$(gc_log_option "$java" "$PWD/logs/gc.log")
if [ -n "$gc_log" ]; then export JDK_JAVA_OPTIONS="$gc_log${{JDK_JAVA_OPTIONS:+ $JDK_JAVA_OPTIONS}}"; fi
unset CATALINA_PID CATALINA_OPTS JAVA_OPTS JSSE_OPTS CLASSPATH JPDA_OPTS LOGGING_MANAGER LOGGING_CONFIG _RUNJAVA
[ -n "$java_home" ] || unset JAVA_HOME
export JRE_HOME="${{java%/bin/java}}"
exec "$home/bin/catalina.sh" run 2>&1
"""

EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}
cat "$1/conf/server.xml" | frame server_xml
cat "$1/conf/context.xml" 2>/dev/null | frame context_xml
for file in "$1"/conf/*/*/*.xml; do
  if [ -f "$file" ]; then cat "$file" | frame "context:${{file##*/}}"; fi
done
process_frames "$2"
"""

EXAMPLES = """<?xml version="1.0" encoding="UTF-8"?>
<Context docBase="{home}/webapps/examples" ignoreAnnotations="true">
  <CookieProcessor className="org.apache.tomcat.util.http.Rfc6265CookieProcessor" sameSiteCookies="strict" />
</Context>
"""
"""As META-INF/context.xml of the examples, without its valve: a descriptor in `conf` is read in place of that one."""
