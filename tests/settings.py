"""Settings of the tests: the real ones, on a private PostgreSQL and Redis that end with the session."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from benchhub import embedded


def _end_session(data_dir: Path, owner_pid: int) -> None:
    """Stops the services and removes their files, however the session ended short of a kill; not in a fork."""
    if os.getpid() == owner_pid:
        embedded.stop(data_dir)
        shutil.rmtree(data_dir, ignore_errors=True)


# Set by the first process of a session (this line) and inherited by its xdist workers: one server for all of them.
if "BENCHHUB_TEST_DATA_DIR" not in os.environ:
    os.environ["BENCHHUB_TEST_DATA_DIR"] = tempfile.mkdtemp(prefix="benchhub-tests-")
    atexit.register(_end_session, Path(os.environ["BENCHHUB_TEST_DATA_DIR"]), os.getpid())
# Hosts of tests are on this machine, as those of a demonstration are.
os.environ["BENCHHUB_HOST_NETWORKS"] = "127.0.0.0/8,::1/128"
for name in ("DATABASE_URL", "DATABASE_REPLICA_URL", "REDIS_URL", "SECRET_KEY", "BENCHHUB_KEY_FILE"):
    os.environ.pop(name, None)
os.environ["BENCHHUB_DATA_DIR"] = os.environ["BENCHHUB_TEST_DATA_DIR"]

from benchhub.environment import broker_url  # noqa: E402
from benchhub.settings import *  # noqa: E402, F403
from benchhub.settings import DATABASES, REDIS_URL  # noqa: E402

# Each xdist worker has a test database of its own (pytest-django) and a Redis database of its own.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "master").removeprefix("gw")
REDIS_URL = REDIS_URL.replace("?db=0", f"?db={int(_worker) + 1 if _worker.isdigit() else 0}")
CELERY_BROKER_URL = broker_url(REDIS_URL)
BENCHHUB_BROKER_REDIS_URL = REDIS_URL

# As the workers that tests start: a lease that is over is doubted for a heartbeat and a half.
BENCHHUB_HEARTBEAT_S = 1

# A test may stand in its transaction for as long as a slow machine needs; processes that tests start have the limit.
DATABASES["default"]["OPTIONS"].pop("options", None)
DATABASES["default"]["OPTIONS"]["connect_timeout"] = "60"

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast, and only here
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
BENCHHUB_SENDS_MAIL = True
INSTALLED_APPS += [  # noqa: F405 - a test is its own provider
    "allauth.socialaccount.providers.openid_connect",
    "allauth.socialaccount.providers.saml",
]
