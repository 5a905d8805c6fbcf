"""What the shop knows after a call that went wrong."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from example_project.shop import calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.fixtures import Settings


def read_request(connection: socket.socket) -> None:
    """To its end: closing with something unread resets the connection, and the answer may be lost with it."""
    with connection.makefile("rb") as request:
        length = 0
        while (line := request.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        request.read(length)


@contextmanager
def server_that_answers(answer: bytes) -> Iterator[str]:
    """One connection: reads a request, sends `answer`, closes. An empty answer keeps the connection open instead."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                read_request(connection)
                if answer:
                    connection.sendall(answer)
                else:
                    connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def test_a_server_that_is_not_there_has_done_nothing(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings.SHOP_OUTSIDE_URL = f"http://127.0.0.1:{port}"
    with pytest.raises(calls.UnavailableError) as caught:
        calls.post("/charges", {}, key="k")
    assert str(caught.value) == f"127.0.0.1:{port} can't be reached"


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (b"HTTP/1.0 503 Busy\r\n\r\n{}", calls.UnavailableError, "POST /charges: not now, said the server"),
        (b"HTTP/1.0 429 Slowly\r\n\r\n{}", calls.UnavailableError, "POST /charges: not now, said the server"),
        (
            b"HTTP/1.0 500 Oops\r\n\r\n{}",
            calls.NoAnswerError,
            "POST /charges: the server failed, who knows how far it came",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\n<html>", calls.NoAnswerError, "no answer to POST /charges"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{", calls.NoAnswerError, "no answer to POST /charges"),
        (b"nonsense", calls.NoAnswerError, "no answer to POST /charges"),
        (b'HTTP/1.0 402 No\r\n\r\n{"error": "broke"}', calls.RefusedError, "POST /charges was refused: broke"),
        (b"HTTP/1.0 404 No\r\n\r\n{}", calls.RefusedError, "POST /charges was refused: 404"),
    ],
)
def test_what_is_known_depends_on_what_came_back(
    settings: Settings, answer: bytes, error: type[Exception], message: str
) -> None:
    with server_that_answers(answer) as url:
        settings.SHOP_OUTSIDE_URL = url
        with pytest.raises(error) as caught:
            calls.post("/charges", {}, key="k")
    assert str(caught.value) == message


def test_a_server_that_does_not_answer_in_time_may_have_done_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "TIMEOUT", 0.1)
    with server_that_answers(b"") as url:
        settings.SHOP_OUTSIDE_URL = url
        with pytest.raises(calls.NoAnswerError, match=r"^no answer to GET /ledger$"):
            calls.get("/ledger")
