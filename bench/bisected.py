"""A bisection over commits of a small server, to the commit and the function: `python -m bench.bisected`.

A repository of six commits of an HTTP server in C; one of them gives the function `checksum` more to do. BenchHub
builds each with make over SSH, loads it with wrk, and profiles a twin of each run with perf. PostgreSQL, Redis, hosts
and the worker are its own, below one directory, and end with it. Exit status 1 when another commit is named than the
planted one, or its function not first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMITS = 6
PLANTED_AT = 3
FUNCTION = "checksum (app)"
"""The index of the first bad commit."""
SERVER = r"""
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORK(name, turns) \
  __attribute__((noinline)) uint64_t name(uint64_t s) { \
    for (int i = 0; i < (turns); i++) s = s * 6364136223846793005ULL + i; \
    return s; \
  }
WORK(decode, 300000)
WORK(price, 250000)
WORK(render, 250000)
WORK(checksum, CHECKSUM_TURNS)

static void *talk(void *given) {
  int fd = (int)(intptr_t)given;
  char in[4096], out[256];
  size_t have = 0;
  for (ssize_t got; (got = read(fd, in + have, sizeof in - 1 - have)) > 0;) {
    have += got;
    in[have] = 0;
    if (!strstr(in, "\r\n\r\n")) continue;
    have = 0;
    uint64_t said = checksum(render(price(decode(strlen(in)))));
    char body[64];
    int length = snprintf(body, sizeof body, "hello %llu\n", (unsigned long long)said);
    int size = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, body);
    if (write(fd, out, size) != size) break;
  }
  close(fd);
  return 0;
}

int main(int count, char **words) {
  if (count < 2) return 2;
  int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 64)) return 1;
  for (;;) {
    int fd = accept(listener, 0, 0);
    pthread_t thread;
    if (fd < 0) continue;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (pthread_create(&thread, 0, talk, (void *)(intptr_t)fd) == 0) pthread_detach(thread);
  }
}
"""
MAKEFILE = "app: server.c\n\tcc -O1 -g -fno-omit-frame-pointer -pthread -o app server.c\n"
TURNS, CHECKSUM_TURNS = 1_000_000, 200_000
"""Of all functions together, a millisecond or so of CPU for each request; of `checksum` before the planted commit."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--percent", type=int, default=30, help="of the CPU of a request: what checksum gets to do more"
    )
    parser.add_argument("--load-s", type=int, default=4, help="the measured load of a run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchhub-bisected-") as directory:
        return played(given, Path(directory))


def repository(folder: Path, percent: int) -> list[str]:
    """The commits of a new repository, oldest first."""
    folder.mkdir()
    _git(folder, "init", "-q")
    (folder / "Makefile").write_text(MAKEFILE)
    made = []
    for number in range(COMMITS):
        turns = CHECKSUM_TURNS + (TURNS * percent // 100 if number >= PLANTED_AT else 0)
        text = f"#define CHECKSUM_TURNS {turns}\n{SERVER}"
        (folder / "server.c").write_text(f"{text}/* change {number} */\n")
        _git(folder, "add", ".")
        _git(folder, "commit", "-qm", f"Change {number}")
        made.append(_git(folder, "rev-parse", "--short=10", "HEAD"))
    return made


def _git(folder: Path, *words: str) -> str:
    own = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(folder))
    return subprocess.run([*own, *words], check=True, capture_output=True, text=True).stdout.strip()


def played(given: argparse.Namespace, directory: Path) -> int:
    """The settings are read once, so the environment comes first and the imports after it."""
    directory.chmod(0o755)  # PostgreSQL's account must get through
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BENCHHUB_KEY_FILE"):
        os.environ.pop(name, None)
    os.environ["BENCHHUB_DATA_DIR"] = str(directory / "data")
    os.environ["BENCHHUB_HOST_NETWORKS"] = "127.0.0.0/8,::1/128"
    import bench.django_project  # noqa: F401
    from bench.bisected_play import bisected
    from benchhub import embedded

    folder = directory / "stage"
    folder.mkdir()
    commits = repository(directory / "shop", given.percent)
    began = time.monotonic()
    try:
        answer, runs = bisected(folder, directory / "shop", commits, load_s=given.load_s)
    finally:
        embedded.stop(directory / "data")
    print(f"Planted: checksum, {given.percent} % of the CPU of a request, in {commits[PLANTED_AT]}.")
    print(f"{runs} runs in {(time.monotonic() - began) / 60:.0f} min.\n")
    print(answer.text)
    return 0 if (answer.first_bad, answer.function) == (commits[PLANTED_AT], FUNCTION) else 1


if __name__ == "__main__":
    sys.exit(main())
