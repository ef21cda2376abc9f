"""Importing this sets Django up, for measurements that are not management commands."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchhub.settings")
django.setup()
