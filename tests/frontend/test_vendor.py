"""Third-party browser code is in the repository exactly as locked."""

import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "frontend" / "static" / "vendor"
LOCK = json.loads((VENDOR / "lock.json").read_text())


def test_every_vendored_file_is_as_locked_and_nothing_else_is_there() -> None:
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "lock.json"
    }
    assert found == {entry["file"]: entry["sha256"] for entry in LOCK}


def test_the_lock_has_the_versions_of_package_json() -> None:
    pinned = json.loads((ROOT / "package.json").read_text())["dependencies"]
    assert {entry["package"]: entry["version"] for entry in LOCK} == pinned


def test_every_package_comes_with_its_licence() -> None:
    directories = {path.name for path in VENDOR.iterdir() if path.is_dir()}
    assert directories == {entry["file"].split("/")[0] for entry in LOCK if entry["file"].endswith("/LICENSE")}
