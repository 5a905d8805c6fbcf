from __future__ import annotations

from collections.abc import Sequence

from tests.servers.server import HOST, Server, program


class Redis(Server):
    """Keeps nothing: whoever kills or stops it has lost all messages."""

    title = "Redis"
    packages = "redis-server"

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def prepare(self) -> None:
        """Nothing: it keeps nothing."""

    def command(self) -> Sequence[str]:
        where = ["--bind", HOST, "--port", str(self.port), "--dir", str(self.folder)]
        return [program(Redis, "redis-server"), *where, "--save", "", "--appendonly", "no"]

    def ask(self) -> None:
        import redis

        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            client.ping()
