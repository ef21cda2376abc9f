"""The one settings file. Everything that differs between installations comes from the environment (.env.example)."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from agents.base.version import own_version
from benchhub import embedded, single_sign_on
from benchhub.account_settings import *  # noqa: F403 - Django reads one module
from benchhub.celery_settings import *  # noqa: F403 - Django reads one module
from benchhub.connections import BoundedConnection, PooledConnection
from benchhub.environment import (
    broker_url,
    database_settings,
    default_data_dir,
    envbool,
    envchoice,
    envheaders,
    envint,
    envlist,
    envnetworks,
    envpath,
    envsecret,
    envsite,
    envurl,
    kept_secret,
    network_services,
    own_command,
)
from benchhub.file_storage import file_storage
from experiments.registry.teams.group_rules import read_rules
from experiments.registry.workers.queues import DEFAULT, declared, is_amqp, queue_name, queues_of

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = own_version()
BENCHHUB_COMMAND = own_command(BASE_DIR)
DEBUG = envbool("DEBUG", False)

# Where things are ---------------------------------------------------------------------------------------------------
# Without DATABASE_URL and REDIS_URL this is the one-machine start: BenchHub runs both by itself.
BENCHHUB_DATA_DIR = default_data_dir()
_database_url, _redis_url = envsecret("DATABASE_URL"), envsecret("REDIS_URL")
if (_database_url is None) != (_redis_url is None):
    raise ImproperlyConfigured("Set both DATABASE_URL and REDIS_URL, or neither to let BenchHub run its own.")
BENCHHUB_EMBEDDED = _database_url is None
_urls = embedded.urls(BENCHHUB_DATA_DIR)
REDIS_URL = _redis_url or _urls.redis_url

# A backup a day, where an operator wants one.
BENCHHUB_BACKUP_DIR = envpath("BENCHHUB_BACKUP_DIR")
BENCHHUB_BACKUPS_KEPT = envint("BENCHHUB_BACKUPS_KEPT", 7)
if BENCHHUB_BACKUPS_KEPT < 1:
    raise ImproperlyConfigured("BENCHHUB_BACKUPS_KEPT must be at least 1.")

# Web and keys -------------------------------------------------------------------------------------------------------
# HTTPS is the rule; only the one-machine start serves plain HTTP, to this machine.
BENCHHUB_HTTPS = envbool("BENCHHUB_HTTPS", not BENCHHUB_EMBEDDED)

SECRET_KEY_FALLBACKS = envlist("SECRET_KEY_FALLBACKS")
# One Fernet key a line, newest first: SSH keys at rest are not tied to SECRET_KEY, which is changed for other reasons.
BENCHHUB_KEY_FILE = envpath("BENCHHUB_KEY_FILE") or BENCHHUB_DATA_DIR / "fernet_keys"
if BENCHHUB_EMBEDDED:
    SECRET_KEY = envsecret("SECRET_KEY") or kept_secret(
        BENCHHUB_DATA_DIR / "secret_key", lambda: secrets.token_urlsafe(64)
    )
    kept_secret(BENCHHUB_KEY_FILE, lambda: Fernet.generate_key().decode())
    ALLOWED_HOSTS = envlist("ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
else:
    SECRET_KEY = envsecret("SECRET_KEY") or ""
    if len(SECRET_KEY) < 50:
        raise ImproperlyConfigured("Set SECRET_KEY (or SECRET_KEY_FILE) to at least 50 random characters.")
    if not BENCHHUB_KEY_FILE.is_file():
        raise ImproperlyConfigured(f"BENCHHUB_KEY_FILE {BENCHHUB_KEY_FILE} is missing; bin/new-env makes one.")
    ALLOWED_HOSTS = envlist("ALLOWED_HOSTS")
    if not ALLOWED_HOSTS:
        raise ImproperlyConfigured("Set ALLOWED_HOSTS to the names under which people reach BenchHub.")
CSRF_TRUSTED_ORIGINS = envlist("CSRF_TRUSTED_ORIGINS")
# Where a mail's links lead: a worker that writes one has no request to take the address from.
BENCHHUB_URL = "".join(envlist("BENCHHUB_URL")).rstrip("/") or next(
    iter(CSRF_TRUSTED_ORIGINS), f"{'https' if BENCHHUB_HTTPS else 'http'}://{ALLOWED_HOSTS[0]}"
)

# Applications -------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "benchhub.apps.BenchhubConfig",
    "frontend.apps.FrontendConfig",
    "frontend.shared",
    "experiments.apps.ExperimentsConfig",
    *(["lab"] if (BASE_DIR / "lab").is_dir() else []),  # hosts to play with, of the source tree only
    "django_celery_beat",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "whitenoise.runserver_nostatic",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
FORM_RENDERER = "frontend.shared.forms.renderer.NumbersAsText"
MIDDLEWARE = [
    "benchhub.health.ProbeMiddleware",
    "benchhub.requests.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "benchhub.security_headers.ContentSecurityPolicyMiddleware",
    "benchhub.control_characters.ControlCharacterMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "benchhub.requests.one_thread",
]
ROOT_URLCONF = "benchhub.urls"
WSGI_APPLICATION = "benchhub.wsgi.application"
ASGI_APPLICATION = "benchhub.asgi.application"
_templates: dict[str, Any] = {
    "context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ],
}
if DEBUG:  # read anew for each page; Django keeps them otherwise, unless it is told how to load them
    _templates["loaders"] = [
        "django.template.loaders.filesystem.Loader",
        "django.template.loaders.app_directories.Loader",
    ]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "frontend" / "pages"],  # run/page.html is frontend/pages/run/page.html
        "APP_DIRS": not DEBUG,
        "OPTIONS": _templates,
    }
]

# Database and cache -------------------------------------------------------------------------------------------------
# Under ASGI a persistent connection per thread would pile up, so: a new one per request, or a pool (set for the web).
DATABASE_POOL_SIZE = envint("DATABASE_POOL_SIZE", 0)
# Only the web has one (benchhub.asgi): the end of a run or a migration may take longer than anybody waits for a page.
DATABASE_STATEMENT_TIMEOUT_S = envint("DATABASE_STATEMENT_TIMEOUT_S", 0)
_database = database_settings(_database_url or _urls.database_url)
# A server that is gone is noticed in seconds, not in the two hours of the kernel's defaults; sockets ignore the latter.
_patience = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
_database["OPTIONS"] = _patience | _database["OPTIONS"]
# A process that is frozen amid a transaction keeps its locks: those who would take its runs over would wait for ever.
_idle_s = envint("DATABASE_IDLE_TRANSACTION_S", max(envint("BENCHHUB_LEASE_S", 60), 10))
_limits_s = {"idle_in_transaction_session_timeout": _idle_s, "statement_timeout": DATABASE_STATEMENT_TIMEOUT_S}
if DATABASE_STATEMENT_TIMEOUT_S:
    _limits_s["lock_timeout"] = 10
if _flags := [f"-c {name}={limit_s}s" for name, limit_s in _limits_s.items() if limit_s]:
    _database["OPTIONS"]["options"] = " ".join([_database["OPTIONS"].get("options", ""), *_flags]).strip()
if DATABASE_POOL_SIZE:
    _database["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": DATABASE_POOL_SIZE,
        "timeout": 10,
        "reconnect_timeout": 5,  # then the next request tries: the pool's own pauses grow to a minute
        "connection_class": BoundedConnection if DATABASE_STATEMENT_TIMEOUT_S else PooledConnection,
    }
DATABASES = {
    "default": {
        **_database,
        "ENGINE": "benchhub.postgresql" if BENCHHUB_EMBEDDED else "django.db.backends.postgresql",
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": bool(DATABASE_POOL_SIZE),  # a pooled connection may be older than the server
        "ATOMIC_REQUESTS": False,
    }
}
# A streaming replica, which histories and files of whole data are read from: experiments/registry/replica.py decides.
# Not pooled, and given up soon: a pool would wait for one that is away.
if _replica_url := envsecret("DATABASE_REPLICA_URL"):
    _replica = database_settings(_replica_url, "DATABASE_REPLICA_URL")
    _replica["OPTIONS"] = _patience | {"connect_timeout": "2"} | _replica["OPTIONS"]
    if _flags:
        _replica["OPTIONS"]["options"] = " ".join([_replica["OPTIONS"].get("options", ""), *_flags]).strip()
    DATABASES["replica"] = {
        **_replica,
        "ENGINE": "django.db.backends.postgresql",
        "CONN_MAX_AGE": 0,
        "TEST": {"MIRROR": "default"},
    }
    DATABASE_ROUTERS = ["experiments.registry.replica.Router"]
# How long it may take to have what the primary has; the primary answers when it takes longer.
BENCHHUB_REPLICA_LAG_MS = envint("BENCHHUB_REPLICA_LAG_MS", 200)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Login throttling counts here. In PostgreSQL, so that it holds across processes and does not need Redis to be up.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "benchhub_cache",
        "TIMEOUT": 3600,
        # Else 300: the counters of those who open shared links would push out those of failed logins.
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}

# People: what does not differ between installations is in benchhub/account_settings.py ------------------------------
ACCOUNT_EMAIL_VERIFICATION = "optional" if envlist("EMAIL_HOST") else "none"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if BENCHHUB_HTTPS else "http"
ALLAUTH_TRUSTED_PROXY_COUNT = envint("BENCHHUB_PROXY_COUNT", 0)
EMAIL_BACKEND = (
    "django.core.mail.backends.smtp.EmailBackend"
    if envlist("EMAIL_HOST")
    else "django.core.mail.backends.console.EmailBackend"
)
EMAIL_HOST = "".join(envlist("EMAIL_HOST"))
BENCHHUB_SENDS_MAIL = bool(EMAIL_HOST)
EMAIL_PORT = envint("EMAIL_PORT", 25)
EMAIL_HOST_USER = "".join(envlist("EMAIL_HOST_USER"))
EMAIL_HOST_PASSWORD = envsecret("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = envbool("EMAIL_USE_TLS", False)
EMAIL_TIMEOUT = 10  # a worker sends the mails about alerts
DEFAULT_FROM_EMAIL = "".join(envlist("DEFAULT_FROM_EMAIL", ("benchhub@localhost",)))

# Second factor and single sign-on (docs/signin.md) --------------------------------------------------------------------
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not BENCHHUB_HTTPS  # localhost alone: browsers refuse it elsewhere
SOCIALACCOUNT_PROVIDERS = single_sign_on.providers()
# What a provider's libraries take to load is for those that have one.
INSTALLED_APPS += [f"allauth.socialaccount.providers.{kind}" for kind in SOCIALACCOUNT_PROVIDERS]
BENCHHUB_SSO_SIGNUP = envbool("BENCHHUB_SSO_SIGNUP", True)
BENCHHUB_SSO_GROUPS_CLAIM = single_sign_on.text(envlist("BENCHHUB_SSO_GROUPS_CLAIM", ("groups",)))
try:
    BENCHHUB_SSO_GROUPS = read_rules(single_sign_on.entries(envlist("BENCHHUB_SSO_GROUPS")))
except ValueError as error:
    raise ImproperlyConfigured(f"BENCHHUB_SSO_GROUPS: {error}.") from error
BENCHHUB_TEAM_FOUNDERS = envchoice("BENCHHUB_TEAM_FOUNDERS", ("operators", "everyone"))

# Security -----------------------------------------------------------------------------------------------------------
# Plain HTTP is for the one-machine start, which listens on the loopback address only.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = BENCHHUB_HTTPS
SESSION_COOKIE_NAME = "__Host-session" if BENCHHUB_HTTPS else "benchhub_session"
CSRF_COOKIE_NAME = "__Host-csrf" if BENCHHUB_HTTPS else "benchhub_csrf"
# Where no host of any team may be: at this installation's own database and broker, and in networks that are denied.
BENCHHUB_OWN_SERVICES = network_services(list(DATABASES.values()), REDIS_URL, envsecret("BROKER_URL"))
BENCHHUB_DENIED_NETWORKS = envnetworks("BENCHHUB_DENIED_NETWORKS")
# Where hosts may be although nobody outside should reach it: the loopback, the link, this machine's own addresses.
BENCHHUB_HOST_NETWORKS = envnetworks("BENCHHUB_HOST_NETWORKS")
SESSION_COOKIE_AGE = 14 * 24 * 3600
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if BENCHHUB_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = BENCHHUB_HTTPS
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if ALLAUTH_TRUSTED_PROXY_COUNT else None  # anyone could send it otherwise
)
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"  # no cookie of its own
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024

# Texts and files ----------------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = envpath("BENCHHUB_STATIC_ROOT") or BENCHHUB_DATA_DIR / "staticfiles"
# Hashed names need `collectstatic`; without it (tests, development) the files are served from where they lie.
BENCHHUB_COLLECTED_STATIC = envbool("BENCHHUB_COLLECTED_STATIC", not BENCHHUB_EMBEDDED)
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not BENCHHUB_COLLECTED_STATIC
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "benchhub.storage.HashedStaticStorage"
        if BENCHHUB_COLLECTED_STATIC
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
# Files of runs above 1 MB; where neither a directory nor a bucket is set, the database has them all.
if _files := file_storage(BENCHHUB_DATA_DIR, one_machine=BENCHHUB_EMBEDDED):
    STORAGES["files"] = _files
# A browser is sent to the bucket with a signed link; off where it cannot reach it: then the files come through here.
BENCHHUB_BUCKET_LINKS = envbool("BENCHHUB_BUCKET_LINKS", True)

# Celery: what does not differ between installations is in benchhub/celery_settings.py ---------------------------------
# Redis has the messages as well, unless there is another broker for them.
_broker_url = envsecret("BROKER_URL") or REDIS_URL
CELERY_BROKER_URL = broker_url(_broker_url)
BENCHHUB_BROKER_REDIS_URL = "" if is_amqp(CELERY_BROKER_URL) else _broker_url
CELERY_BROKER_TRANSPORT_OPTIONS = RABBITMQ_OPTIONS if is_amqp(CELERY_BROKER_URL) else REDIS_OPTIONS  # noqa: F405

# Where this process's workers are, and so whose hosts they reach; empty = at the central site.
BENCHHUB_SITE = envsite("BENCHHUB_SITE")
CELERY_TASK_QUEUES = [declared(name, CELERY_BROKER_URL) for name in queues_of(BENCHHUB_SITE)]
CELERY_TASK_DEFAULT_QUEUE = queue_name(DEFAULT, BENCHHUB_SITE)

# Runs that may be live at once at a site that has no limit of its own, the central one included.
BENCHHUB_SITE_LIVE_RUNS = envint("BENCHHUB_SITE_LIVE_RUNS", 1000)
if BENCHHUB_SITE_LIVE_RUNS < 1:
    raise ImproperlyConfigured("BENCHHUB_SITE_LIVE_RUNS must be at least 1.")
# Runs: how soon another worker adopts the run of a dead one, how often a live one says so, how long a host may be away.
BENCHHUB_LEASE_S = envint("BENCHHUB_LEASE_S", 60)
BENCHHUB_HEARTBEAT_S = envint("BENCHHUB_HEARTBEAT_S", 3)
BENCHHUB_PATIENCE_S = envint("BENCHHUB_PATIENCE_S", 600)
if not 1 <= BENCHHUB_HEARTBEAT_S <= BENCHHUB_LEASE_S / 2:  # else runs are adopted from workers that live
    raise ImproperlyConfigured("BENCHHUB_HEARTBEAT_S must be from 1 to half of BENCHHUB_LEASE_S.")
# After how long without any worker a host puts itself back; more than a cut and an adoption may take together.
BENCHHUB_DEADMAN_S = envint("BENCHHUB_DEADMAN_S", max(1800, 2 * (BENCHHUB_PATIENCE_S + BENCHHUB_LEASE_S)))
# It is renewed five times within that time: a cut may begin just before a renewal, and use up all of the patience.
if 4 * BENCHHUB_DEADMAN_S <= 5 * (BENCHHUB_PATIENCE_S + BENCHHUB_LEASE_S):
    raise ImproperlyConfigured("BENCHHUB_DEADMAN_S must be more than 5/4 of BENCHHUB_PATIENCE_S + BENCHHUB_LEASE_S.")

# The jars that profilers need, which bin/get-profilers fetches.
BENCHHUB_PROFILERS = envpath("BENCHHUB_PROFILERS") or BENCHHUB_DATA_DIR / "cache" / "profilers"

# The queue: after how many hours of waiting a run counts as one class more urgent, so that a low one is not passed all
# night and for ever; for how many days at most a person may keep a host for themselves, as holidays make people forget.
BENCHHUB_AGEING_H = envint("BENCHHUB_AGEING_H", 6)
BENCHHUB_RESERVATION_DAYS = envint("BENCHHUB_RESERVATION_DAYS", 14)
if BENCHHUB_AGEING_H < 1 or BENCHHUB_RESERVATION_DAYS < 1:
    raise ImproperlyConfigured("BENCHHUB_AGEING_H and BENCHHUB_RESERVATION_DAYS must be at least 1.")

# The REST API: requests per minute and token, and of results measured elsewhere; 0 = as many as one likes.
BENCHHUB_API_PER_MINUTE = envint("BENCHHUB_API_PER_MINUTE", 6_000)
BENCHHUB_INGEST_PER_MINUTE = envint("BENCHHUB_INGEST_PER_MINUTE", 60_000)
# How many event streams a token may have open in a web process; 0 = as many as one likes.
BENCHHUB_API_STREAMS = envint("BENCHHUB_API_STREAMS", 20)

# Whether assistants may start runs at /mcp, with a token of the scope launch: as a plan that is then confirmed.
BENCHHUB_MCP_LAUNCH = envbool("BENCHHUB_MCP_LAUNCH", False)

# Webhooks: to the public Internet over HTTPS, unless these networks (10.0.0.0/8), plain HTTP or another CA are allowed.
BENCHHUB_WEBHOOK_NETWORKS = envnetworks("BENCHHUB_WEBHOOK_NETWORKS")
BENCHHUB_WEBHOOK_HTTP = envbool("BENCHHUB_WEBHOOK_HTTP", False)
BENCHHUB_WEBHOOK_CA_FILE = envpath("BENCHHUB_WEBHOOK_CA_FILE")

# Traces of runs, where the operator has an OpenTelemetry Collector: the variables are those of OpenTelemetry.
OTEL_EXPORTER_OTLP_ENDPOINT = envurl("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_EXPORTER_OTLP_HEADERS = envheaders("OTEL_EXPORTER_OTLP_HEADERS")
OTEL_EXPORTER_OTLP_CERTIFICATE = envpath("OTEL_EXPORTER_OTLP_CERTIFICATE")

# Logging: one event, one line, on standard error ----------------------------------------------------------------------
BENCHHUB_LOG_FORMAT = envchoice("BENCHHUB_LOG_FORMAT", ("line", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"context": {"()": "benchhub.logs.ContextFilter"}},
    "formatters": {
        "line": {"()": "benchhub.logs.LineFormatter"},
        "json": {"()": "benchhub.logs.JsonFormatter"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": BENCHHUB_LOG_FORMAT, "filters": ["context"]}
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "django.server": {"handlers": [], "level": "INFO", "propagate": True},
        "uvicorn": {"handlers": [], "level": "INFO", "propagate": True},
        "uvicorn.error": {"handlers": [], "level": "INFO", "propagate": True},
        "uvicorn.access": {"level": "WARNING"},  # the proxy has one, and probes would fill this one
        # Three lines for each message, every few seconds and day and night: 29 MB a day in which nothing happened.
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "asyncssh": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},  # two lines for each request
        "fontTools": {"level": "WARNING"},  # a line for each table of each font of a PDF
    },
}

# Metrics: who scrapes from another machine sends this token -----------------------------------------------------------
BENCHHUB_METRICS_TOKEN = envsecret("BENCHHUB_METRICS_TOKEN") or ""
