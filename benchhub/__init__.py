"""Wiring of BenchHub: settings, URLs, Celery, and the PostgreSQL and Redis of the one-machine start."""

import os

# OpenBLAS reads this when numpy is loaded. Else each process has a thread for each core, which wait for each other in
# a loop: where other processes need the cores, small matrices take many times as long, and no matrix here is large.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
