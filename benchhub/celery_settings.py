"""The settings of Celery that no installation changes. PostgreSQL is the truth, the broker is a hint."""

from __future__ import annotations

from benchhub import beat
from experiments.registry.workers.queues import queues_of

CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = CELERY_EVENT_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
# Acknowledged at the start: a late one is delivered 2-3 times past the visibility timeout. The reaper recovers runs.
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
REDIS_OPTIONS = {
    "visibility_timeout": 300,
    "socket_timeout": 5,  # a hung Redis would block a web request for over 40 s
    "socket_connect_timeout": 3,
    "socket_keepalive": True,
    "health_check_interval": 10,
    "retry_on_timeout": False,
}
# A message to RabbitMQ counts as sent once a majority of its nodes has it.
RABBITMQ_OPTIONS = {"confirm_publish": True, "read_timeout": 5, "write_timeout": 5}
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "benchhub.ticking:Ticker"
CELERY_BEAT_SCHEDULE = beat.entries(queues_of(""))
