"""Which database a trap exists on. `make test` runs on SQLite and names, with these reasons, what it left out."""

from __future__ import annotations

import pytest

from tests.databases import ENGINE

server = pytest.mark.skipif(ENGINE == "sqlite", reason="needs PostgreSQL or MariaDB: make test-services")
postgresql = pytest.mark.skipif(ENGINE != "postgresql", reason="needs PostgreSQL: make test-services")
mariadb = pytest.mark.skipif(ENGINE != "mysql", reason="needs MariaDB: make test-services")
sqlite = pytest.mark.skipif(ENGINE != "sqlite", reason="is about SQLite: make test")
