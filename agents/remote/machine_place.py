"""Shell texts that find a host's two places for BenchHub: the login's own directory, and the one that all logins see.

`.benchhub` in the home is the directory of the machine that used it first. Another machine that sees the same home
(NFS) has `.benchhub/machines/NAME` for itself: fences, start tokens and timers are the machine's, not the home's.

The place that all logins see is sticky, so nobody removes a claim of another login there: a hostile user can claim the
machine for himself and keep BenchHub away, no more.
"""

from __future__ import annotations

CLAIM_PREFIX = "benchhub-claim"

# Sets root, here (this machine's name), known (the name of the machine whose directory root is) and base.
FIND_BASE = """
find_base() {
  home=$(cd && pwd -P) || return 1
  root=$home/.benchhub
  machine_id=''
  [ ! -r /etc/machine-id ] || machine_id=$(head -c 12 /etc/machine-id)
  read -r here </proc/sys/kernel/hostname
  here=$(printf %.100s "$here-$machine_id" | tr -c 'A-Za-z0-9._-' _)
  known=$here
  [ ! -s "$root/machine" ] || read -r known <"$root/machine"
  base=$root
  [ "$known" = "$here" ] || base=$root/machines/$here
}
"""

# Sets unfit: why root is no place for runs. It may be a link to a larger disk, but not to a directory that holds
# something else, as the one that leads to /etc does.
FIND_UNFIT = """
find_unfit() {
  unfit=''
  [ -e "$root" ] || [ -L "$root" ] || return 0
  shown=$root
  [ ! -L "$root" ] || shown="$root, which is a link to $(readlink -f -- "$root"),"
  if [ ! -d "$root" ]; then unfit="$shown is no directory"
  elif [ "$(stat -L -c %u -- "$root")" != "$(id -u)" ]; then unfit="$shown belongs to another user"
  elif [ ! -e "$root/machine" ]; then
    for entry in "$root"/* "$root"/.[!.]*; do
      case ${entry##*/} in
        runs | fence | machines) ;;
        *) [ ! -e "$entry" ] || { unfit="$shown holds ${entry##*/}, which is not BenchHub's"; return; } ;;
      esac
    done
  fi
}
"""

# Sets place: the directory that all logins of this machine see.
FIND_PLACE = """
find_place() {
  place=${BENCHHUB_MACHINE_DIR-}
  if [ -n "$place" ]; then
    [ -d "$place" ] && [ -w "$place" ] && return
    echo "BENCHHUB_MACHINE_DIR is $place, which is no directory that this login may write to" >&2
    return 1
  fi
  for place in /var/tmp /tmp /dev/shm; do
    [ ! -d "$place" ] || [ ! -k "$place" ] || [ ! -w "$place" ] || return 0
  done
  echo "none of /var/tmp, /tmp and /dev/shm is a sticky directory that every login may write to" >&2
  return 1
}
"""

# Needs $run, the run's directory: gives the machine to whoever wants it next.
GIVE_UP_CLAIMS = """
for file in "$run"/claim-*; do
  [ ! -s "$file" ] || { read -r claim <"$file" && rm -f -- "$claim"; }
done
""".strip()

# Reads a claim into c_*. A dead-man timer holds a lock of its claim for as long as it lives, so the kernel itself tells
# that the holder lives; until the timer runs, the claim counts for its time. Whatever another user wrote is only text,
# and the login is that of the file's owner: people are told to run something as that login.
#
# find_foreign: whether a claim of another installation lives; the name of the file tells whose it is at first sight.
CLAIMS = f"""
read -r boot_now </proc/sys/kernel/random/boot_id
read_claim() {{
  [ -f "$1" ] && [ ! -L "$1" ] && [ -r "$1" ] || return 1
  c_lines=$(head -c 2000 "$1" 2>/dev/null | tr -cd '[:print:]\\n')
  {{ read -r c_state c_boot c_until c_installation c_fence c_run c_role c_login c_since c_more
    read -r c_directory; read -r c_name; }} <<END_OF_CLAIM
$c_lines
END_OF_CLAIM
  case $c_state in [012]) ;; *) return 1 ;; esac
  case $c_until in '' | *[!0-9]*) return 1 ;; esac
  [ -n "$c_since" ] && [ -z "$c_more" ] && [ "${{#c_until}}" -lt 16 ] || return 1
  c_login=$(stat -c %U -- "$1")
}}
claim_lives() {{
  flock -s -n 0 <"$1" || return 0
  read -r c_up c_rest </proc/uptime
  [ "$c_boot" = "$boot_now" ] && [ "$c_state" != 2 ] && [ "${{c_up%.*}}" -lt "$c_until" ]
}}
find_foreign() {{
  for foreign in "$place"/{CLAIM_PREFIX}.*; do
    case $foreign in "$place/{CLAIM_PREFIX}.$installation".*) continue ;; esac
    read_claim "$foreign" && [ "$c_installation" != "$installation" ] && claim_lives "$foreign" && return
  done
  return 1
}}
"""

# The greatest fence that this login's home has seen on this machine, and whose it is. What an older version has written
# since (the two numbers differ) is nobody's.
HOLDER = """
read_holder() {
  seen=0 whose='' whose_name=''
  [ ! -e "$fences/fence" ] || seen=$(cat "$fences/fence") || return 1
  case $seen in '' | *[!0-9]*) echo "$fences/fence does not hold a number" >&2; return 1 ;; esac
  [ "${#seen}" -lt 19 ] || { echo "$fences/fence holds a number of ${#seen} digits" >&2; return 1; }
  [ -s "$fences/holder" ] || return 0
  { read -r number whose; read -r whose_name; } <"$fences/holder"
  [ "$number" = "$seen" ] || whose='' whose_name=''
}
write_whole() {
  printf '%s\\n' "$2" "$3" >"$1.part" && own "$1.part" && sync "$1.part" && mv -f -- "$1.part" "$1"
}
hold() {
  printf '%s\\n' "$fence" >"$fences/fence.part" && own "$fences/fence.part" && sync "$fences/fence.part" \\
    && mv -f -- "$fences/fence.part" "$fences/fence" || return 1
  write_whole "$fences/holder" "$fence $installation" "$installation_name" && rm -f -- "$fences"/link-*
}
own() { [ -z "${SUDO_UID-}" ] || chown "$SUDO_UID" "$@"; }
"""
