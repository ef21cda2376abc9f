"""A folded profile as compressed bytes, and back: what is stored of a profile, whatever form it came in.

One deflated text: the length of the head, the head as JSON (what the profile says of itself, its dictionary of frames,
how many stacks and places there are, and when its slices of time begin), then the lengths of the stacks (32 bit), the
places (32 bit) and the weights (64 bit), and of the slices, where it has some, edges and stacks (32 bit) and weights
(64 bit), little-endian. 100,000 stacks of 30 frames are 14 MB before and some 2 MB after.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from typing import Any

import numpy as np

from agents.base.errors import ParseError
from agents.profiles.base.folding import MAX_FRAMES, MAX_PLACES, MAX_STACKS
from agents.profiles.base.profile import About, Frame, Profile, Weights
from agents.profiles.base.slices import MOST_SLICES, Slices

MAX_PACKED_BYTES = 512_000_000
"""Unpacked; a profile within the limits of reading is below it."""
STORE_AGAIN = "Its file is kept beside it: store that again."
_HEAD = 8
_LEVEL = 6


def pack(profile: Profile) -> bytes:
    """The profile as compressed bytes; `unpack` gives the same one back."""
    head: dict[str, Any] = {
        "about": asdict(profile.about),
        "frames": [[frame.name, frame.place] for frame in profile.frames],
        "stacks": len(profile),
        "places": len(profile.places),
    }
    slices = profile.slices
    if slices is not None:
        head["slices"] = {"start_s": slices.start_s, "step_s": slices.step_s, "count": len(slices)}
    text = json.dumps(head, ensure_ascii=True, separators=(",", ":")).encode()
    packer = zlib.compressobj(_LEVEL)
    found = [packer.compress(len(text).to_bytes(_HEAD, "little")), packer.compress(text)]
    arrays = [(np.diff(profile.edges), "<i4"), (profile.places, "<i4"), (profile.weights, "<f8")]
    if slices is not None:
        arrays += [(slices.edges, "<i4"), (slices.stacks, "<i4"), (slices.weights, "<f8")]
    found += [packer.compress(np.ascontiguousarray(array, kind).data) for array, kind in arrays]
    return b"".join((*found, packer.flush()))


def unpack(data: bytes) -> Profile:
    """The profile that `pack` made this of. ParseError: it is no such thing, or damaged."""
    try:
        text = zlib.decompressobj().decompress(data, MAX_PACKED_BYTES)
        edge = _HEAD + int.from_bytes(text[:_HEAD], "little")
        head = json.loads(text[_HEAD:edge])
        stacks, places = int(head["stacks"]), int(head["places"])
        if not (0 < stacks <= MAX_STACKS and 0 < places <= MAX_PLACES and len(head["frames"]) <= MAX_FRAMES):
            raise ParseError("a stored profile has impossible sizes", hint=STORE_AGAIN)
        lengths = np.frombuffer(text, "<i4", stacks, edge).astype(np.int64)
        found = np.frombuffer(text, "<i4", places, edge + 4 * stacks).astype(np.int32, copy=False)
        weights = np.frombuffer(text, "<f8", stacks, edge + 4 * stacks + 4 * places).astype(np.float64)
        frames = tuple(Frame(str(name), str(place)) for name, place in head["frames"])
        about = dict(head["about"])
        about["window_s"] = None if about["window_s"] is None else tuple(about["window_s"])
        whole = lengths.min() > 0 and lengths.sum() == places and found.min() >= 0 and found.max() < len(frames)
        if not whole or not np.isfinite(weights).all() or weights.min() <= 0:
            raise ParseError("the content of a stored profile is damaged", hint=STORE_AGAIN)
        edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        behind = edge + 12 * stacks + 4 * places
        slices = _unpacked(text, behind, head["slices"], weights) if "slices" in head else None
        return Profile(About(**about), frames, edges, found, weights, slices)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, zlib.error) as error:
        raise ParseError("a stored profile is damaged", hint=STORE_AGAIN) from error


def _unpacked(text: bytes, edge: int, said: dict[str, Any], weights: Weights) -> Slices:
    """The slices that begin at this byte. ParseError: they do not make up the weights of the stacks."""
    count, start_s, step_s = int(said["count"]), float(said["start_s"]), float(said["step_s"])
    if not 0 < count <= MOST_SLICES:
        raise ParseError("the slices of a stored profile have impossible sizes", hint=STORE_AGAIN)
    edges = np.frombuffer(text, "<i4", count + 1, edge).astype(np.int64)
    edge += 4 * (count + 1)
    entries = int(edges[-1])
    stacks = np.frombuffer(text, "<i4", entries, edge).astype(np.int32)
    weighed = np.frombuffer(text, "<f8", entries, edge + 4 * entries).astype(np.float64)
    whole = edges[0] == 0 and np.diff(edges).min() >= 0 and stacks.min() >= 0 and stacks.max() < len(weights)
    sound = whole and np.isfinite([start_s, step_s]).all() and step_s > 0 and weighed.min() > 0
    if not sound or not np.allclose(np.bincount(stacks, weighed, len(weights)), weights):
        raise ParseError("the slices of a stored profile are damaged", hint=STORE_AGAIN)
    return Slices(start_s, step_s, edges, stacks, weighed)
