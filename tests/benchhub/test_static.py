from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchhub.embedded import PROJECT_DIR


def test_static_files_can_be_collected_with_every_name_inside_them_resolved(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "BENCHHUB_DATA_DIR": str(tmp_path),
        "BENCHHUB_COLLECTED_STATIC": "1",
    }
    result = subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--noinput"],
        cwd=PROJECT_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert (tmp_path / "staticfiles" / "staticfiles.json").is_file()
