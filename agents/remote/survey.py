"""What of BenchHub is on a host: runs of any installation in the login's home, their timers and jobs, and claims.

One command, which changes nothing. What it tells of other logins is what their claims say: their homes are closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agents.base.command import Command, script
from agents.base.errors import CommandError
from agents.base.installation import Installation
from agents.base.session import Session
from agents.remote.deadman import JOB
from agents.remote.job_supervisor import IDENTITY
from agents.remote.machine_place import CLAIM_PREFIX, CLAIMS, FIND_BASE, FIND_PLACE, FIND_UNFIT

Fate = Literal["nothing", "restored", "armed", "failed", "left"]
"""What became of a run's changes: nothing was changed, the host put itself back, its timer was set and not disarmed,
the host tried to put itself back and failed, or the timer was disarmed with changes left: a person was told."""

MAX_BYTES = 4 << 20
UNFIT_HINT = "BenchHub keeps its runs in the directory .benchhub of the login's home. Move what is there away."
_FATES: tuple[Fate, ...] = ("nothing", "restored", "armed", "failed", "left")

# One line for each thing, its fields between tabs. A job that this login may not look at counts as one that lives.
SURVEY = (
    IDENTITY
    + FIND_BASE
    + FIND_UNFIT
    + FIND_PLACE
    + CLAIMS
    + f"""
tell() {{
  line=$1
  shift
  for field; do
    case $field in *[[:space:]]*) field=$(printf %s "$field" | tr '\\t\\n' '  ') ;; esac
    line="$line	$field"
  done
  printf '%s\\n' "$line"
}}
job_lives() {{
  [ -r "$1" ] && [ -x "$1" ] || return 0
  for file in "$1/meta" "$1/starter"; do
    [ -s "$file" ] && read -r j_pid j_ticks j_boot j_more <"$file" && alive "$j_pid" "$j_ticks" "$j_boot" && return 0
  done
  return 1
}}
tell_run() {{
  r_installation='' r_fence='' r_boot='' r_name=''
  if [ -s "$1/owner" ]; then
    {{ read -r r_installation r_fence r_boot r_more; read -r r_name; }} <"$1/owner"
  fi
  set -- "$1" "$1"/journal/[0-9]*.json
  [ -e "$2" ] && entries=$(($# - 1)) || entries=0
  set -- "$1"
  timer=none
  [ ! -d "$1/{JOB}" ] || {{ job_lives "$1/{JOB}" && timer=live || timer=ended; }}
  jobs=''
  for job in "$1"/jobs/*/; do
    job=${{job%/}}
    [ ! -d "$job" ] || ! job_lives "$job" || jobs="$jobs ${{job##*/}}"
  done
  fired=''
  [ ! -s "$1/fired" ] || read -r fired <"$1/fired"
  if [ "$fired" = 0 ] || [ -e "$1/settled" ]; then fate=restored
  elif [ -n "$fired" ]; then fate=failed
  elif [ -e "$1/deadline" ]; then fate=armed
  elif [ "$entries" -gt 0 ]; then fate=left
  else fate=nothing
  fi
  tell run "$1" "$r_installation" "$r_fence" "$r_boot" "$entries" "$fate" "$timer" "$jobs" "$r_name"
}}
survey() {{
  find_unfit
  tell home "$base" "$here" "$known" "$boot_now" "$place" "$unfit"
  h_fence='' h_installation='' h_name=''
  [ ! -s "$base/fence/fence" ] || read -r h_fence <"$base/fence/fence"
  if [ -s "$base/fence/holder" ]; then
    {{ read -r h_number h_installation; read -r h_name; }} <"$base/fence/holder"
    [ "$h_number" = "$h_fence" ] || h_installation='' h_name=''
  fi
  tell fence "$h_fence" "$h_installation" "$h_name"
  for claim in "$place"/{CLAIM_PREFIX}.*; do
    read_claim "$claim" || continue
    claim_lives "$claim" && lives=live || lives=dead
    tell claim "$claim" "$lives" "$c_state" "$c_boot" "$c_installation" "$c_fence" "$c_run" "$c_role" "$c_login" \\
      "$(stat -c %u "$claim")" "$c_since" "$c_directory" "$c_name"
  done
  for run in "$base"/runs/*/; do
    [ ! -d "$run" ] || tell_run "${{run%/}}"
  done
}}
"""
)
_READ = SURVEY + "find_base && find_place || exit 1\nsurvey\n"


@dataclass(frozen=True)
class RunOnHost:
    """A run's directory in the home of the login. `installation` has no id when an older version made it.

    `entries`: of its undo journal. `jobs`: those of which a process may live. `boot_id` is of when it was made.
    """

    directory: str
    installation: Installation
    fence: int | None
    boot_id: str
    entries: int
    fate: Fate
    timer: Literal["live", "ended", "none"]
    jobs: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.directory.rpartition("/")[2]

    @property
    def undone(self) -> bool:
        """Whether the host may still have what this run changed, and nobody was told of it."""
        return self.entries > 0 and self.fate in ("armed", "failed")


@dataclass(frozen=True)
class Claim:
    """What one login told all others: that it works on this machine, for which installation and run.

    `lives`: its timer does, or its time is not over. `changes`: none yet, made, or left to a person. `since_unix_s` is
    the host's clock. `uid` and `login` are who owns the file, all else is what he wrote into it.
    """

    path: str
    lives: bool
    changes: Literal["none", "made", "left"]
    boot_id: str
    installation: Installation
    fence: int | None
    run: str
    role: str
    login: str
    uid: int | None
    since_unix_s: int | None
    directory: str

    def __str__(self) -> str:
        """For people: `run r12-65f0 of BenchHub at https://perf.example (login bench)`."""
        return f"run {self.run} of {self.installation} (login {self.login})"


@dataclass(frozen=True)
class Survey:
    """All that was found. `machine` is this one's name, `home_of` the one whose directory `.benchhub` itself is.

    `unfit`: why `.benchhub` is no place for runs, empty when it is one. `holder` is the installation whose `fence` is
    the greatest that the login's home has seen.
    """

    base: str
    machine: str
    home_of: str
    boot_id: str
    place: str
    unfit: str
    fence: int | None
    holder: Installation
    claims: tuple[Claim, ...]
    runs: tuple[RunOnHost, ...]

    @property
    def shares_home(self) -> bool:
        """Whether another machine sees the same home and used it first."""
        return self.machine != self.home_of

    def notes(self, installation: Installation) -> tuple[str, ...]:
        """What a person of this installation should know of the host, one sentence each."""
        foreign = [claim for claim in self.claims if claim.installation.id != installation.id]
        said = [f"It is used by {claim} now; a run here waits for that one." for claim in foreign if claim.lives]
        said += [
            f"{claim} has left changes on it, and nobody looks after them."
            for claim in foreign
            if not claim.lives and claim.changes != "none"
        ]
        if self.shares_home:
            said.append(
                f"The home of its login is that of {self.home_of}, too; what runs here is kept in {self.base}, apart."
            )
        return tuple(said)


def command() -> Command:
    """Looks at everything in one round trip and changes nothing."""
    return script(_READ)


async def read(session: Session) -> Survey:
    """What of BenchHub is on this host, as its login sees it. CommandError when that cannot be read."""
    result = await session.run(command(), max_output_bytes=MAX_BYTES)
    return parse(result.check(f"Looking for runs on {session.host}").stdout)


def parse(output: bytes) -> Survey:
    """What the survey's lines say; lines that are not its own are skipped. CommandError when the first are missing."""
    lines = [line.split("\t") for line in output.decode("utf-8", "replace").splitlines()]
    home = next((fields for fields in lines if fields[0] == "home" and len(fields) == 7), None)
    fence = next((fields for fields in lines if fields[0] == "fence" and len(fields) == 4), None)
    if home is None or fence is None:
        raise CommandError("What runs on the host could not be read.")
    return Survey(
        base=home[1],
        machine=home[2],
        home_of=home[3],
        boot_id=home[4],
        place=home[5],
        unfit=home[6],
        fence=_number(fence[1]),
        holder=_installation(fence[2], fence[3]),
        claims=tuple(_claim(fields) for fields in lines if fields[0] == "claim" and len(fields) == 14),
        runs=tuple(_run(fields) for fields in lines if fields[0] == "run" and len(fields) == 10),
    )


def _claim(fields: list[str]) -> Claim:
    _, path, lives, state, boot_id, installation, fence, run, role, login, uid, since, directory, name = fields
    return Claim(
        path=path,
        lives=lives == "live",
        changes="left" if state == "2" else "made" if state == "1" else "none",
        boot_id=boot_id,
        installation=_installation(installation, name),
        fence=_number(fence),
        run=run,
        role=role,
        login=login,
        uid=_number(uid),
        since_unix_s=_number(since),
        directory=directory,
    )


def _run(fields: list[str]) -> RunOnHost:
    _, directory, installation, fence, boot_id, entries, fate, timer, jobs, name = fields
    return RunOnHost(
        directory=directory,
        installation=_installation(installation, name),
        fence=_number(fence),
        boot_id=boot_id,
        entries=_number(entries) or 0,
        fate=next((known for known in _FATES if known == fate), "armed"),
        timer="live" if timer == "live" else "ended" if timer == "ended" else "none",
        jobs=tuple(jobs.split()),
    )


def _installation(uid: str, name: str) -> Installation:
    return Installation("" if uid == "-" else uid, name)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
