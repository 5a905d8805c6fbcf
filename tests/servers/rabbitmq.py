from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.servers import processes
from tests.servers.server import HOST, Server, program


class RabbitMQ(Server):
    """A node with a name, a cookie and an epmd of its own, so that it does not meet the machine's."""

    title = "RabbitMQ"
    packages = "rabbitmq-server"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._epmd_port, self._distribution_port = processes.free_port(), processes.free_port()
        self._epmd: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@{HOST}:{self.port}//"

    def prepare(self) -> None:
        (self.folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = {HOST}:{self.port}\n")

    def command(self) -> Sequence[str]:
        # Debian's program on PATH changes the user and the folder; the one behind it does not.
        behind = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
        return [
            str(behind) if behind.exists() else program(RabbitMQ, "rabbitmq-server", "/usr/sbin", "/usr/local/sbin")
        ]

    def environment(self) -> dict[str, str]:
        folder = str(self.folder)
        return {
            "HOME": folder,  # of the cookie
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": f"workflow_engine_{self.port}@localhost",
            "RABBITMQ_CONF_ENV_FILE": f"{folder}/none",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            "RABBITMQ_LOG_BASE": folder,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            # The shell becomes the server, instead of waiting for it.
            "RUNNING_UNDER_SYSTEMD": "true",
        }

    def ask(self) -> None:
        import amqp

        with amqp.Connection(f"{HOST}:{self.port}", connect_timeout=5) as connection:
            connection.channel()

    def start(self) -> None:
        if self._epmd is None:
            epmd = [program(RabbitMQ, "epmd"), "-port", str(self._epmd_port), "-address", HOST]
            self._epmd = processes.start(epmd, self.log, folder=self.folder)
        super().start()

    def kill(self) -> None:
        super().kill()
        if self._epmd is not None:
            # It would tell the next start that the node is still there.
            self._epmd.kill()
            self._epmd.wait()
            self._epmd = None
