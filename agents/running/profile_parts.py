"""What a profiler wrote, one file for each process, as one profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.base.errors import ParseError
from agents.profiles.base.folding import Folding
from agents.profiles.base.profile import Profile
from agents.profiles.base.profile_format import HEAD_BYTES
from agents.profiles.pprof.otlp_format import OTLP, fold
from agents.profiles.pprof.otlp_format import write as write_otlp
from agents.profiles.pprof.pprof_format import PPROF, write
from agents.profiles.reading import form_of, read_profile


@dataclass(frozen=True)
class Parts:
    """One profile as bytes of a `form`; `samples` and `lost_samples` are None where its form does not tell them."""

    content: bytes
    form: str
    samples: int | None
    lost_samples: int | None


def read_parts(files: Sequence[Path]) -> Parts:
    """The profile in these files. A process without a sample has an empty one. ParseError: there is none in any."""
    files = [file for file in files if file.stat().st_size]
    if len(files) > 1 and all(map(_is_otlp, files)):
        return _read_together(files)
    contents = [content for content in (file.read_bytes() for file in files) if content.strip()]
    if not contents:
        raise ParseError("there is no sample in the profile", hint="Was the server busy at all?")
    profiles = [read_profile(content) for content in contents]
    samples = _sum([_samples(one) for one in profiles])
    lost = _sum([one.about.lost_samples for one in profiles])
    if len(contents) == 1:
        return Parts(contents[0], form_of(contents[0]).kind, samples, lost)
    if all(form_of(content).kind == "collapsed" for content in contents):
        return Parts(b"\n".join(contents), "collapsed", samples, lost)
    folding = Folding()  # and then a form that keeps the unit of the weights, which collapsed stacks do not
    for profile in profiles:
        for frames, weight in profile.stacks():
            folding.add([folding.frame(frame.name, frame.place) for frame in frames], weight)
    return Parts(write(folding.profile(profiles[0].about)), PPROF.kind, samples, lost)


def _read_together(files: Sequence[Path]) -> Parts:
    """The pieces of recordings as one profile with its times; a piece of them may have no sample."""
    folding = Folding()
    said = [fold(folding, file.read_bytes()) for file in files]
    about = folding.profile(next((one for one in said if one.samples), said[0])).about
    return Parts(write_otlp(folding, about), OTLP.kind, sum(one.samples or 0 for one in said), None)


def _is_otlp(file: Path) -> bool:
    with file.open("rb") as source:
        return OTLP.looks_like(source.read(HEAD_BYTES))


def _samples(profile: Profile) -> int | None:
    if profile.about.samples is not None:
        return profile.about.samples
    return round(profile.weight) if profile.about.unit == "samples" else None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
