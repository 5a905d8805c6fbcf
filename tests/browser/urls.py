"""The tests' URLs, and the icon that browsers ask for unasked."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import path

from tests.urls import urlpatterns as _tests

urlpatterns = [*_tests, path("favicon.ico", lambda _request: HttpResponse(status=204))]
