"""Calls to other companies' servers, and what is known when one fails.

What matters to a workflow is not why a call failed, but whether it may have been carried out all the same:

* UnavailableError and RefusedError: it was not.
* NoAnswerError: nobody knows. Ask again with the same key, and the other side will say what it did.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from workflow_engine import FinalError

TIMEOUT = 3.0
"""Seconds that an answer may take. A lease has to be longer, or an attempt would be given up while it still waits."""


class UnavailableError(Exception):
    """The server can't be reached, or says that it is too busy. Nothing was done; it may work later."""


class NoAnswerError(Exception):
    """The request was sent and no answer came. It may have been carried out."""


class RefusedError(FinalError):
    """The server understood, and said no. Asking again gets the same answer, so the engine is not to try."""

    def __init__(self, what: str, status: int, body: Mapping[str, Any]) -> None:
        self.status, self.body = status, body
        self.code = str(body.get("error", ""))
        super().__init__(f"{what} was refused: {self.code or status}")


def post(path: str, body: Mapping[str, Any], *, key: str = "") -> dict[str, Any]:
    """Ask for something to be done; `key` makes it once, however often it is asked. Raises the errors above."""
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
    return _call("POST", path, headers, json.dumps(body))


def get(path: str, **query: str) -> dict[str, Any]:
    """Look something up. Raises the errors above."""
    return _call("GET", f"{path}?{urlencode(query)}" if query else path, {}, None)


def server_url() -> str:
    """Of the payment provider and the carrier: here one server plays both."""
    return getattr(settings, "SHOP_OUTSIDE_URL", "http://127.0.0.1:8765")


def _call(method: str, path: str, headers: Mapping[str, str], body: str | None) -> dict[str, Any]:
    url = urlsplit(server_url())
    connection = HTTPConnection(url.hostname or "127.0.0.1", url.port, timeout=TIMEOUT)
    what = f"{method} {path.partition('?')[0]}"
    try:
        try:
            connection.connect()
        except OSError as error:
            raise UnavailableError(f"{url.netloc} can't be reached") from error
        try:
            # From here on something has left this process: whatever goes wrong, it may have arrived.
            connection.request(method, path, body, {**headers, "Client": str(os.getpid())})
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswerError(f"no answer to {what}") from error
    finally:
        connection.close()
    if response.status in {429, 503}:
        raise UnavailableError(f"{what}: not now, said the server")
    if response.status >= 500:
        raise NoAnswerError(f"{what}: the server failed, who knows how far it came")
    if response.status >= 400:
        raise RefusedError(what, response.status, answer)
    return dict(answer)
