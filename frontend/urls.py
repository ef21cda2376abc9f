"""Every page's address. One line per page or action."""

from __future__ import annotations

from django.urls import path

from frontend.views import home

urlpatterns = [
    path("", home.home, name="home"),
]
