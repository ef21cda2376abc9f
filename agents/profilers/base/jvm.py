"""How a running JVM is spoken to: jcmd of its own JDK, else the one on the PATH."""

from __future__ import annotations

FIND_JCMD = """
find_jcmd() {
  java=$(readlink "/proc/$1/exe")
  jcmd=${java%/*}/jcmd
  [ -x "$jcmd" ] || jcmd=$(command -v jcmd) || { echo "there is no jcmd beside $java" >&2; exit 4; }
}
"""

LACKS_HOTSPOT = """
java=${beside:+$beside/}java
[ -x "$java" ] || java=java
case $("$java" -version 2>&1) in
  *OpenJ9*) echo "its JVM is Eclipse OpenJ9, and BenchHub can do this with HotSpot alone|Take perf, or another JDK." ;;
esac
"""

LACKS_JCMD = f"""
{LACKS_HOTSPOT}
beside_java=$(command -v java || :)
beside_java=$(readlink -f "$beside_java" 2>/dev/null || :)
if [ ! -x "$beside/jcmd" ] && [ ! -x "${{beside_java%/*}}/jcmd" ] && ! command -v jcmd >/dev/null; then
  echo "there is no jcmd, which a JRE does not have|Install a JDK there as root: apt-get install default-jdk-headless"
fi
"""
