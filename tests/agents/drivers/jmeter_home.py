"""Where JMeter is on this machine: JMETER_HOME, or what bin/get-jmeter put into the data directory."""

from __future__ import annotations

import os
from pathlib import Path


def jmeter_home() -> str | None:
    """The installation's directory; None when there is none."""
    data = os.environ.get("BENCHHUB_DATA_DIR") or "/var/lib/benchhub"
    found = [Path(os.environ.get("JMETER_HOME", "/nowhere")), *sorted(Path(data).glob("cache/jmeter-5.6*"))]
    return next((str(home) for home in found if (home / "bin" / "jmeter").is_file()), None)
