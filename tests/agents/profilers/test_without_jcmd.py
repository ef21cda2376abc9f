"""async-profiler in a JVM of a JRE, which has no jcmd: the library comes with the start of the JVM."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from agents.base.process_start import ProcessStart
from agents.profilers.async_profiler import FILE, AsyncProfiler
from agents.profilers.base.window import parse_window, window_command
from agents.profiles.functions import functions_of
from agents.profiles.reading import read_profile
from agents.running.common_start import _UPTIME
from agents.running.profiler_files import ARCHITECTURES, library_file
from tests import needs
from tests.agents.run_lab import LIBRARIES

PROGRAM = """
public class Busy {
  static long burn(int n) { long s = n; for (int i = 0; i < n; i++) s = s * 31 + i % 7; return s; }
  public static void main(String[] given) {
    long s = 0;
    for (long end = System.nanoTime() + 60_000_000_000L; System.nanoTime() < end; ) s += burn(1_000_000);
    System.out.println(s);
  }
}
"""
TOOLS = ("awk", "cat", "ls", "readlink", "sh", "sleep", "timeout")


def jre(folder: Path) -> Path:
    """A Java without its tools, and the few programs of a host, without jcmd among them."""
    needs.require_program("java", "javac")
    home = Path(shutil.which("java") or "").resolve().parent.parent
    made = folder / "jre"
    (made / "bin").mkdir(parents=True)
    shutil.copy2(home / "bin" / "java", made / "bin")
    for name in ("lib", "conf", "release"):
        if (home / name).exists():
            (made / name).symlink_to(home / name)
    for tool in TOOLS:
        (made / "bin" / tool).symlink_to(str(shutil.which(tool)))
    return made


def test_a_jvm_without_jcmd_begins_with_the_library_in_it(tmp_path: Path) -> None:
    needs.require(LIBRARIES.is_dir(), "the jars of profilers", "bin/get-profilers fetches them")
    home, folder, profiler = jre(tmp_path), tmp_path / "a folder", AsyncProfiler()
    folder.mkdir()
    (tmp_path / "Busy.java").write_text(PROGRAM)
    subprocess.run(["javac", "Busy.java"], cwd=tmp_path, check=True, timeout=300)
    (brought,) = profiler.brings
    with zipfile.ZipFile(library_file(brought.library, LIBRARIES)) as jar:
        content = jar.read(brought.member.format(arch=ARCHITECTURES[os.uname().machine]))
    (folder / FILE).write_bytes(content)
    environment = {"PATH": str(home / "bin"), "HOME": str(tmp_path)}
    launch = profiler.prepared(ProcessStart(), str(folder), "cpu")
    argv = [*launch.prefix, "java", *launch.jvm_options, "-cp", str(tmp_path), "Busy"]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            assert server.stdout is not None
            assert b"JDK_JAVA_OPTIONS" in server.stdout.readline()
            now_s = float(subprocess.run(["sh", "-c", _UPTIME], capture_output=True, check=True).stdout)
            command = window_command(profiler, "cpu", str(folder), "async", until_s=now_s + 9, pids=(server.pid,))
            done = subprocess.run(command.argv, env=environment, capture_output=True, text=True, check=False)
        finally:
            server.kill()
        assert done.returncode == 0, (done.stderr, server.stdout.read())
    assert parse_window(done.stdout).engine in ("perf_events", "ctimer")
    (part,) = folder.glob("async.*.part")
    costs = functions_of(read_profile(part.read_bytes()))
    assert costs.total_ratio["Busy.burn"] > 0.5
