"""Whole files on a host as step state: read with their mode and owner, written beside and renamed, removed again."""

from __future__ import annotations

import base64
from typing import Annotated

from pydantic import AfterValidator

from agents.command import Command, script
from agents.errors import ParseError, PlanError
from agents.steps.base import State, StepContext

MAX_FILE_BYTES = 512 * 1024
FORBIDDEN = (
    "/proc",
    "/sys",
    "/dev",
    "/boot",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
)
"""Where no step writes a file: not files at all, needed to boot, or the keys to the host itself."""

_BINARY = "base64:"

_READ = """
path=$1 limit=$2 instance=$3
shift 3
directory=$(dirname -- "$path")
real=$(cd -P -- "$directory" 2>/dev/null && pwd -P) || { echo "refused its directory does not exist"; exit 0; }
if [ -n "$instance" ]; then
  inside=$(cd -P -- "$instance" && pwd -P)
  case $real/ in "$inside"/*) ;; *) echo "refused a symbolic link leads out of the instance directory"; exit 0;; esac
fi
for forbidden; do
  case $real/$(basename -- "$path")/ in "$forbidden"/*) echo "refused it is under $forbidden"; exit 0;; esac
done
if [ -L "$path" ]; then echo "refused it is a symbolic link"; exit 0; fi
if [ ! -e "$path" ]; then echo absent; exit 0; fi
if [ ! -f "$path" ]; then echo "refused it is not a regular file"; exit 0; fi
if [ ! -r "$path" ]; then echo "refused it cannot be read"; exit 0; fi
set -- $(stat -c '%a %u:%g %h %s' -- "$path")
if [ "$3" != 1 ]; then echo "refused it has $3 hard links"; exit 0; fi
if [ "$4" -gt "$limit" ]; then echo "refused it is larger than $limit bytes"; exit 0; fi
echo "file $1 $2 $4"
cat -- "$path"
"""

# cp first: the temporary file takes over owner, ACL and extended attributes of the file that it replaces.
_WRITE = """
set -eu
path=$1 mode=$2 owner=$3
directory=$(dirname -- "$path")
if [ -L "$path" ] || { [ -e "$path" ] && [ ! -f "$path" ]; }; then
  echo "$path is not a regular file any more" >&2; exit 1
fi
temporary=$(mktemp -- "$directory/.benchhub.XXXXXX")
trap 'rm -f -- "$temporary"' EXIT
if [ -e "$path" ]; then cp --preserve=all -- "$path" "$temporary" 2>/dev/null || cp -p -- "$path" "$temporary"; fi
cat >"$temporary"
if [ -n "$owner" ] && [ "$(stat -c %u:%g -- "$temporary")" != "$owner" ]; then chown -- "$owner" "$temporary"; fi
chmod -- "$mode" "$temporary"
sync -- "$temporary" 2>/dev/null || sync
mv -f -- "$temporary" "$path"
sync -- "$directory" 2>/dev/null || sync
"""

_REMOVE = """
if [ -L "$1" ] || { [ -e "$1" ] && [ ! -f "$1" ]; }; then echo "$1 is not a regular file any more" >&2; exit 1; fi
rm -f -- "$1"
"""


def _checked(path: str) -> str:
    if not path or "\0" in path or "\n" in path or len(path) > 1024:
        raise ValueError("a path is one line of at most 1024 characters")
    parts = path.removeprefix("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"'{path}' must name a file without '.', '..' and empty parts")
    if path.startswith("/") and (found := next((f for f in FORBIDDEN if f"{path}/".startswith(f"{f}/")), None)):
        raise ValueError(f"files under {found} cannot be written by a step")
    return path


FilePath = Annotated[str, AfterValidator(_checked)]
"""An absolute path, or one inside the instance directory of the run."""


def read_file(context: StepContext, path: str) -> Command:
    """Prints state and content for `parse_file`; an absolute path is read as root."""
    outside = path.startswith("/")
    args = (context.path(path), str(MAX_FILE_BYTES), "" if outside else context.instance, *FORBIDDEN)
    return script(_READ, *args, privileged=outside)


def parse_file(path: str, output: bytes) -> State:
    """`content`, `mode` and `owner`, all None for a file that does not exist.

    Raises PlanError when the path is nothing that a step may touch (a link, a directory, out of bounds).
    """
    header, _, content = output.partition(b"\n")
    word, _, rest = header.decode("utf-8", "replace").partition(" ")
    if word == "absent":
        return {"content": None, "mode": None, "owner": None}
    if word == "refused":
        raise PlanError(f"{path} cannot be edited: {rest}", hint="Name a regular file of its own.")
    fields = rest.split()
    if word != "file" or len(fields) != 3 or not fields[2].isdigit():
        raise ParseError(f"no file state for {path}", line=1)
    if len(content) != int(fields[2]):
        raise ParseError(
            f"{path} changed while it was read, or the output was cut: {len(content)} of {fields[2]} bytes"
        )
    return {"content": encode_content(content), "mode": fields[0].zfill(4), "owner": fields[1]}


def write_file(context: StepContext, path: str, content: str, mode: str, owner: str | None) -> Command:
    """Replaces the whole file in one rename. `content` is as in the state, `owner` "uid:gid" or None to leave it."""
    data = decode_content(content)
    return script(
        _WRITE, context.path(path), mode, owner or "", stdin=data, privileged=path.startswith("/"), timeout_s=60
    )


def restore_file(context: StepContext, path: str, before: State) -> tuple[Command, ...]:
    """Brings the file back to `before`; removes it when there was none."""
    content, mode = before.get("content"), before.get("mode")
    if content is None or mode is None:
        return (script(_REMOVE, context.path(path), privileged=path.startswith("/")),)
    return (write_file(context, path, content, mode, before.get("owner")),)


def encode_content(data: bytes) -> str:
    """File content as text that any database can hold: as it is when it is UTF-8, else with a base64 mark."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if (text or not data) and "\0" not in text and not text.startswith(_BINARY):
        return text
    return _BINARY + base64.b64encode(data).decode("ascii")


def decode_content(content: str) -> bytes:
    if content.startswith(_BINARY):
        return base64.b64decode(content.removeprefix(_BINARY))
    return content.encode("utf-8")
