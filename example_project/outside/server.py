"""HTTP: which desk answers a request, and what happens to the answer on its way."""

from __future__ import annotations

import json
import re
import select
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from . import parcels, payments
from .ledger import NOT_FOUND, Answer, Ledger
from .luck import Luck, Mood
from .requests import BadRequestError, Request, Route

SLOW_SECONDS = 0.2
STALL_SECONDS = 60.0


def ledger(request: Request) -> Answer:
    """GET /ledger: everything that was done."""
    return Answer(200, request.ledger.as_dict())


class Server(ThreadingHTTPServer):
    """Serves one ledger, with a thread per request. `with Server(...)` closes the socket and the ledger at the end.

    Args:
        path: of the ledger's file.
        luck: what goes wrong.
        port: 0 takes a free one.
    """

    request_queue_size = 64

    def __init__(self, path: str, luck: Luck, *, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.luck, self.ledger = luck, Ledger(path)
        own = Route("GET", r"/ledger", ledger), Route("GET", r"/stalled", self._stalled)
        self.routes: tuple[Route, ...] = (*payments.ROUTES, *parcels.ROUTES, *own)
        self._waiting: list[dict[str, str]] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        return self

    def server_close(self) -> None:
        super().server_close()
        self.ledger.close()

    def stall(self, client: str, reference: str, connection: Any) -> None:
        """Keep a client waiting until it goes away."""
        waiting = {"client": client, "reference": reference}
        with self._lock:
            self._waiting.append(waiting)
        # The client has sent all it had to say: what can be read now is that it hung up.
        select.select([connection], [], [], STALL_SECONDS)
        with self._lock:
            self._waiting.remove(waiting)

    def _stalled(self, request: Request) -> Answer:
        """GET /stalled: who waits for an answer that does not come."""
        with self._lock:
            return Answer(200, {"stalled": list(self._waiting)})


class Handler(BaseHTTPRequestHandler):
    """Speaks HTTP/1.0: one request per connection."""

    server: Server

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that is overridden
        """Nothing: what happened is in the ledger."""

    def _handle(self) -> None:
        url = urlsplit(self.path)
        for route in self.server.routes:
            match = re.fullmatch(route.path, url.path)
            if match and route.method == self.command:
                break
        else:
            self._send(NOT_FOUND)
            return
        try:
            request = Request(
                body=self._body(),
                query=dict(parse_qsl(url.query)),
                name=match[1] if match.groups() else "",
                idempotency_key=self.headers.get("Idempotency-Key", ""),
                client=self.headers.get("Client", ""),
                ledger=self.server.ledger,
                luck=self.server.luck,
            )
            self._respond(route, request)
        except BadRequestError as error:
            self._send(Answer(400, {"error": str(error)}))

    def _body(self) -> dict[str, Any]:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise BadRequestError("not_a_json_object")
        return body

    def _respond(self, route: Route, request: Request) -> None:
        mood = Mood.FINE
        if route.operation:
            mood = self.server.luck.mood(route.operation, request.reference)
            self.server.ledger.count(f"{route.operation} asked for")
        if mood is not Mood.FINE:
            self.server.ledger.count(mood)
        if mood is Mood.DOWN:
            self._send(Answer(503, {"error": "down"}))
            return
        answer = route.respond(request)
        match mood:
            case Mood.LOST:
                return
            case Mood.STALLED:
                self.server.stall(request.client, request.reference, self.connection)
                return
            case Mood.SLOW:
                time.sleep(SLOW_SECONDS)
            case Mood.TWICE:
                self._send(answer)
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        body = json.dumps(answer.body).encode()
        try:
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            """Who asked has gone. What was done is done."""
