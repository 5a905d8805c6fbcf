"""Which database a trap exists on. tests/conftest.py skips the test on the others, and says so."""

from __future__ import annotations

import pytest

server = pytest.mark.needs("postgresql", "mysql")
postgresql = pytest.mark.needs("postgresql")
mariadb = pytest.mark.needs("mysql")
sqlite = pytest.mark.needs("sqlite")
