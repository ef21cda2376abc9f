"""WSGI entry point, for hosts without ASGI; live pages then hold one thread each."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchhub.settings")

application = get_wsgi_application()
