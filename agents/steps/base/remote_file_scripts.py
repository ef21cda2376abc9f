"""The shell of file steps: read a file with all that belongs to it, replace it in one rename, put it back, remove it.

Arguments: $1 the path, $2 the instance directory ("" outside it). READ: $3 the size limit in bytes. WRITE and RESTORE,
with the content on standard input: $3 mode, $4 owner, $5 size in bytes; RESTORE: $6 the attributes as
READ prints them.
"""

from __future__ import annotations

from agents.steps.base.places import shell_check

# Works inside the file's directory from here on, so that nobody can put another one in its place.
_ENTER = f"""
path=$1 instance=$2
name=$(basename -- "$path")
directory=$(dirname -- "$path")
if ! cd -P -- "$directory" 2>/dev/null; then
  [ ! -d "$directory" ] || refuse "its directory cannot be entered by this login"
  refuse "its directory does not exist"
fi
real=$(pwd -P)
[ "$real" != / ] || real=
if [ -n "$instance" ]; then
  case $real/ in
    "$(cd -P -- "$instance" && pwd -P)"/*) ;;
    *) refuse "a symbolic link leads out of the instance directory";;
  esac
else
{shell_check()}
fi
[ ! -L "./$name" ] || refuse "it is a symbolic link"
[ ! -e "./$name" ] || [ -f "./$name" ] || refuse "it is not a regular file"
"""

# Flags (chattr), ACL and extended attributes are looked at where the host has the tools for them.
READ = f"""
refuse() {{ echo "refused $1"; exit 0; }}
limit=$3
{_ENTER}
flags() {{ lsattr -d -- "$1" 2>/dev/null | cut -d' ' -f1; }}
case $(flags .) in
  *i*) refuse "its directory is immutable (chattr +i)";;
  *a*) refuse "its directory is append-only (chattr +a)";;
esac
[ -w . ] || refuse "its directory cannot be written"
if [ ! -e "./$name" ]; then echo absent; exit 0; fi
[ -r "./$name" ] || refuse "it cannot be read"
case $(flags "./$name") in
  *i*) refuse "it is immutable (chattr +i)";;
  *a*) refuse "it is append-only (chattr +a)";;
esac
set -- $(stat -c '%a %u:%g %h %s' -- "./$name")
[ "$3" = 1 ] || refuse "it has $3 hard links"
[ "$4" -le "$limit" ] || refuse "it is larger than $limit bytes"
attributes=$(
  getfacl -acnEsp -- "./$name" 2>/dev/null | sed -n 's/^[a-z]*:/acl &/p'
  getfattr -d -m - -e base64 -- "./$name" 2>/dev/null |
    sed -n '/^system\\.posix_acl/d; /^security\\.ima/d; /^security\\.evm/d; s/^[a-z]*\\.[^=]*=0s/xattr &/p' | sort
)
echo "file $1 $2 $4 $(printf %s "$attributes" | grep -c .)"
[ -z "$attributes" ] || printf '%s\\n' "$attributes"
cat -- "./$name"
"""

# Without the instance directory there is nothing in it to put back: restore.sh may be run again after all is done.
_UNLESS_GONE = """
if [ -n "$2" ] && [ ! -d "$2" ]; then exit 0; fi
"""

# cp first: the temporary file takes over the owner and every attribute of the file that it replaces.
_WRITE_START = f"""
set -eu
refuse() {{ echo "$path cannot be written: $1" >&2; exit 1; }}
mode=$3 owner=$4 size=$5
{_ENTER}
free_kb=$(df -Pk . 2>/dev/null | sed -n '2s/.* \\([0-9][0-9]*\\)  *[0-9]*% .*/\\1/p')
[ -z "$free_kb" ] || [ "$free_kb" -gt "$((size / 1024))" ] || refuse "its disk has no room for $size bytes"
rm -f -- ./.benchhub.??????
temporary=$(mktemp -- ./.benchhub.XXXXXX)
trap 'rm -f -- "$temporary"' EXIT
"""
_LIKE_IT_IS = """
if [ -e "./$name" ]; then
  cp --preserve=all -- "./$name" "$temporary" 2>/dev/null || cp -p -- "./$name" "$temporary"
fi
"""
_WRITE_CONTENT = """
cat >"$temporary"
[ "$(wc -c <"$temporary")" -eq "$size" ] || refuse "the content did not arrive whole"
if [ -n "$owner" ] && [ "$(stat -c %u:%g -- "$temporary")" != "$owner" ]; then chown -- "$owner" "$temporary"; fi
chmod -- "$mode" "$temporary"
"""
_ATTRIBUTES = """
attributes=$6
entries() { printf '%s\\n' "$attributes" | sed -n "s/^$1 //p"; }
setfacl -b -- "$temporary" 2>/dev/null || :
[ -z "$(entries acl)" ] || entries acl | setfacl --set-file=- -- "$temporary" || :
entries xattr | while read -r line; do
  key=${line%%=*} value=${line#*=}
  if [ "$value" = 0s ]; then setfattr -n "$key" -- "$temporary"; else setfattr -n "$key" -v "$value" -- "$temporary"; fi
done || :
"""
_WRITE_END = """
sync -- "$temporary" 2>/dev/null || sync
mv -fT -- "$temporary" "./$name" 2>/dev/null || mv -f -- "$temporary" "./$name"
sync -- . 2>/dev/null || sync
"""
WRITE = _WRITE_START + _LIKE_IT_IS + _WRITE_CONTENT + _WRITE_END

# With both tools the file is made anew and gets exactly what the journal says; without them it keeps what it has.
RESTORE = f"""{_UNLESS_GONE}{_WRITE_START}
command -v setfacl >/dev/null 2>&1 && command -v setfattr >/dev/null 2>&1 || {{ {_LIKE_IT_IS} }}
{_WRITE_CONTENT}{_ATTRIBUTES}{_WRITE_END}"""

REMOVE = f"""{_UNLESS_GONE}
refuse() {{ echo "$path cannot be removed: $1" >&2; exit 1; }}
{_ENTER}
rm -f -- "./$name" ./.benchhub.??????
"""
