"""A proxy between the tests and a server, which cuts connections: around a COMMIT of the database's, or all of them."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

from django.db import connections


class Cut(StrEnum):
    """What becomes of the COMMIT whose connection is cut; the client can't tell one from another."""

    ANSWER = "the answer is lost"
    REQUEST = "the request is lost"
    LATE = "the request arrives late"


class Proxy:
    """Listens on a port of 127.0.0.1 and forwards to the server, until it is told to cut.

    Args:
        server: host and port.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._cut: Cut | None = None
        self._let_pass = 0
        self._refuse = 0
        self._meanwhile: Callable[[], object] = lambda: None
        self._clients: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.has_cut = threading.Event()
        self.is_over = threading.Event()
        """After the cut, whatever was to happen on the server has happened."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, cut: Cut, *, after: int = 0, refuse: int = 0, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Cut the connection that sends the next COMMIT.

        Args:
            cut: what becomes of that COMMIT.
            after: so many COMMITs pass before.
            refuse: so many new connections are closed at once afterwards, as by a server that is starting again.
            meanwhile: called before the client learns of it; with a late COMMIT, before that reaches the server.
        """
        self._cut, self._let_pass, self._refuse, self._meanwhile = cut, after, refuse, meanwhile

    def cut_another(self, cut: Cut) -> None:
        """Cut the connection that sends the next COMMIT, though one may have been cut before."""
        self.let_pass()
        self.has_cut.clear()
        self.is_over.clear()
        self.cut(cut)

    def let_pass(self) -> None:
        """Cut no COMMIT any more."""
        self._cut = None

    def cut_all(self) -> int:
        """Cut every connection that is open, whatever is under way on it; how many there were."""
        clients = list(self._clients)
        for client in clients:
            with suppress(OSError):  # it has just been closed
                client.shutdown(socket.SHUT_RDWR)
        return len(clients)

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.has_cut.is_set() and self._refuse:
                self._refuse -= 1
                client.close()
            else:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # An OSError: one of the two has gone, or the server is not there.
        with suppress(OSError), client, socket.create_connection(self._server) as server:
            self._clients.add(client)
            try:
                self._forward(client, server)
            finally:
                self._clients.discard(client)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        while True:
            readable, _, _ = select.select([client, server], [], [])
            for source in readable:
                data = source.recv(65536)
                if not data:
                    return
                if source is client and self._is_the_one(data):
                    self._cut_here(client, server, data)
                    return
                (server if source is client else client).sendall(data)

    def _is_the_one(self, data: bytes) -> bool:
        # Five bytes of header in both protocols; PostgreSQL ends the text with a zero.
        if self._cut is None or self.has_cut.is_set() or data[5:].rstrip(b"\0") != b"COMMIT":
            return False
        self._let_pass -= 1
        return self._let_pass < 0

    def _cut_here(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        self.has_cut.set()
        match self._cut:
            case Cut.ANSWER:
                server.sendall(data)
                server.recv(65536)
                self._meanwhile()
            case Cut.REQUEST:
                server.shutdown(socket.SHUT_RDWR)
                self._meanwhile()
            case Cut.LATE:
                client.shutdown(socket.SHUT_RDWR)
                self._meanwhile()
                server.sendall(data)
                server.recv(65536)
        connections.close_all()  # what `meanwhile` has opened in this thread
        self.is_over.set()
