"""What runs on the host for a build, in POSIX sh; all that varies comes in as arguments."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "maven": 'if [ -x ./mvnw ]; then ./mvnw -B -DskipTests package "$@"; else mvn -B -DskipTests package "$@"; fi',
    "gradle": 'gradle=gradle; [ ! -x ./gradlew ] || gradle=./gradlew; "$gradle" --no-daemon assemble "$@"',
    "npm": 'if [ -f package-lock.json ]; then npm ci; else npm install; fi && npm run build --if-present -- "$@"',
    "make": 'make -j"$(nproc)" "$@"',
    "cargo": 'cargo build --release "$@"',
    "container": 'engine=$(command -v podman || command -v docker) && "$engine" build -t "$image" "$@" .',
}
"""Tool -> what it does in the checkout, with the arguments of the step; a wrapper of the project's own goes first."""

RECORD = "build.txt"
"""In the instance: what was built, as KEY=VALUE lines."""
LOG = "build.log"

PROBE = """
cd "$1" 2>/dev/null || exit 0
cat build.txt 2>/dev/null
[ -z "$2" ] || [ ! -e "$2" ] || echo there=yes
:
"""

# One build of a repository at a time. What is kept is named by the commit and by all that makes the build: a build that
# died has no `done`, and is begun anew.
BUILD = """
instance=$1 repository=$2 asked=$3 tool=$4 artefact=$5 to=$6 most=$7 run=$8
shift 8
export GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND='ssh -o BatchMode=yes' LC_ALL=C
fail() { echo "$1" >&2; exit 1; }
builds=$HOME/.benchhub/builds/$(printf %s "$repository" | sha256sum | head -c 16)
mkdir -p "$builds" && cd "$builds" || fail "cannot make $builds"
exec 9>lock
flock 9
if [ ! -d checkout/.git ]; then
  rm -rf checkout checkout.part
  git clone -q --no-checkout -- "$repository" checkout.part || fail "git cannot fetch $repository"
  mv checkout.part checkout
  fetched=yes
fi
cd checkout || exit 1
resolved() {
  case $asked in HEAD|HEAD~*) set -- ;; *) set -- "refs/tags/$asked" "$asked" ;; esac  # HEAD is the repository's own
  for name in "refs/remotes/origin/$asked" "$@"; do
    git rev-parse -q --verify "$name^{commit}" && return
  done
}
case $asked in *[!0-9a-f]*) whole=;; *) whole=$(printf %s "$asked" | wc -c);; esac
sha=
[ "$whole" != 40 ] || sha=$(resolved)
if [ -z "$sha" ]; then
  [ -n "${fetched-}" ] || git fetch -q --force --tags origin '+refs/heads/*:refs/remotes/origin/*' ||
    fail "git cannot fetch $repository"
  case $asked in HEAD|HEAD~*) git remote set-head origin --auto >/dev/null 2>&1 ;; esac
  sha=$(resolved)
fi
[ -n "$sha" ] || fail "$repository has no commit, branch or tag $asked"
key=$(printf '%s\\n' "$run" "$artefact" "$@" | sha256sum | head -c 16)
image=localhost/benchhub-build:$sha-$key
kept=$builds/built/$sha-$key
cached=yes
if [ "$tool" = container ] && [ -f "$kept/done" ]; then
  engine=$(command -v podman || command -v docker) || fail "there is neither podman nor docker"
  "$engine" image inspect "$image" >/dev/null 2>&1 || rm -f "$kept/done"
fi
if [ ! -f "$kept/done" ]; then
  cached=no
  rm -rf "$kept" && mkdir -p "$kept"
  git checkout -q --force --detach "$sha" && git clean -qfdx || fail "git cannot check out $sha"
  if [ -f .gitmodules ]; then
    git submodule update -q --init --recursive --force || fail "git cannot fetch submodules"
  fi
  read -r began rest </proc/uptime
  (eval "$run") >"$kept/build.log" 2>&1 </dev/null 9>&-
  status=$?
  read -r ended rest </proc/uptime
  cp -- "$kept/build.log" "$instance/build.log"
  if [ "$status" != 0 ]; then
    tail -n 30 "$kept/build.log" >&2
    fail "the build of $sha by $tool ended with exit status $status"
  fi
  if [ -n "$artefact" ]; then
    set -- $artefact
    [ -e "$1" ] || fail "the build of $sha made no $artefact: see build.log for what it made"
    [ $# = 1 ] || fail "the build of $sha made $# files like $artefact, not one: $*"
    cp -a -- "$1" "$kept/artefact" || fail "no room for what was built"
    rm -rf -- "$kept/artefact/.git"
  fi
  { echo "seconds=$(awk "BEGIN { print $ended - $began }")"; } >"$kept/about"
  sync
  : >"$kept/done"
fi
touch "$kept/done"
cp -- "$kept/build.log" "$instance/build.log"
if [ -n "$artefact" ]; then
  rm -rf -- "${instance:?}/$to"
  case $to in */*) mkdir -p -- "$instance/${to%/*}";; esac
  cp -a --reflink=auto -- "$kept/artefact" "$instance/$to" || fail "no room for what was built"
fi
{
  echo "commit=$sha"
  echo "cached=$cached"
  cat "$kept/about"
  [ "$tool" != container ] || echo "image=$image"
  [ ! -f "$instance/$to" ] || echo "sha256=$(sha256sum <"$instance/$to" | head -c 64)"
} >"$instance/build.txt.part" && mv "$instance/build.txt.part" "$instance/build.txt"
ls -td "$builds"/built/*/ 2>/dev/null | tail -n "+$((most + 1))" | while read -r old; do rm -rf -- "$old"; done
:
"""

REVERT = """
cd "$1" 2>/dev/null || exit 0
rm -rf -- build.txt build.log
[ -z "$2" ] || rm -rf -- "./$2"
"""
