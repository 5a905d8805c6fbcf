"""The payment provider and the carrier: what they do, do once, and do badly."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from example_project.outside import server as server_module
from example_project.outside.luck import Luck, Mood
from example_project.outside.server import Server
from example_project.shop import calls

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
CHARGE = {"reference": "S-1", "card": "card_1", "amount_minor": 4000, "currency": "EUR"}


@pytest.fixture(autouse=True)
def _world(outside: Server) -> None:
    """Every test has one."""


def charges(server: Server) -> list[tuple[str, int, str | None]]:
    return [(row["reference"], row["amount_minor"], row["refund"]) for row in server.ledger.as_dict()["charges"]]


def plan(server: Server, operation: str, *moods: Mood) -> None:
    server.luck.moods = {(operation, "S-1"): moods}


def refusal(path: str, body: dict[str, Any], key: str = "k1") -> tuple[int, str]:
    with pytest.raises(calls.RefusedError) as caught:
        calls.post(path, body, key=key)
    return caught.value.status, caught.value.code


# --- money ------------------------------------------------------------------------------------


def test_a_charge_is_made_once_per_key_and_answered_alike(outside: Server) -> None:
    first, again, other = (calls.post("/charges", CHARGE, key=key) for key in ("k1", "k1", "k2"))
    assert first == again == {"id": first["id"], "amount_minor": 4000, "currency": "EUR"}
    assert other["id"] != first["id"]
    assert charges(outside) == [("S-1", 4000, None)] * 2
    assert outside.ledger.as_dict()["counts"] == {"charge asked for": 3, "charge repeated": 1}


def test_two_requests_with_one_key_at_the_same_time_are_one_charge(outside: Server) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: calls.post("/charges", CHARGE, key="k1")["id"], range(8)))
    assert (len(set(answers)), charges(outside)) == (1, [("S-1", 4000, None)])


def test_a_key_that_was_used_for_another_request_is_an_error(outside: Server) -> None:
    calls.post("/charges", CHARGE, key="k1")
    assert refusal("/charges", CHARGE | {"amount_minor": 1}) == (409, "key_used_for_another_request")
    assert refusal("/charges/pay_1/refund", {"reference": "S-1"}) == (409, "key_used_for_another_request")
    assert len(charges(outside)) == 1


def test_a_declined_card_is_declined_again_and_nothing_is_taken(outside: Server) -> None:
    for _ in range(2):
        assert refusal("/charges", CHARGE | {"card": "card_declined_7"}) == (402, "card_declined")
    assert charges(outside) == []


def test_a_charge_is_given_back_once_whoever_asks(outside: Server) -> None:
    path = f"/charges/{calls.post('/charges', CHARGE, key='k1')['id']}/refund"
    first, again = (calls.post(path, {"reference": "S-1"}, key="r1") for _ in range(2))
    assert first == again
    assert refusal(path, {"reference": "S-1"}, "r2") == (409, "already_refunded")
    assert charges(outside) == [("S-1", 4000, first["refund"])]


def test_what_was_never_charged_can_not_be_given_back() -> None:
    assert refusal("/charges/pay_0/refund", {"reference": "S-1"}) == (404, "not_found")


def test_charges_are_found_by_their_key_and_by_the_order() -> None:
    name = calls.post("/charges", CHARGE, key="k1")["id"]
    calls.post("/page", {"reference": "S-2", "amount_minor": 1, "currency": "JPY"}, key="k2")
    assert [charge["id"] for charge in calls.get("/charges", key="k1")["charges"]] == [name]
    assert [charge["currency"] for charge in calls.get("/charges", reference="S-2")["charges"]] == ["JPY"]
    assert calls.get("/charges", key="k3") == {"charges": []}


def test_the_books_outlive_the_server(outside: Server, tmp_path: Path) -> None:
    calls.post("/charges", CHARGE, key="k1")
    with Server(str(tmp_path / "outside.sqlite3"), Luck()) as restarted:
        assert charges(restarted) == charges(outside)


# --- parcels ----------------------------------------------------------------------------------


def test_a_label_takes_a_few_looks_where_it_takes_long(outside: Server) -> None:
    outside.luck.sure = {("slow label", "S-1")}
    parcel = calls.post("/parcels", {"reference": "S-1"}, key="k1")
    looks = [calls.get(f"/parcels/{parcel['tracking_number']}")["has_label"] for _ in range(3)]
    assert (parcel["has_label"], looks) == (False, [False, False, True])


def test_a_parcel_is_called_back_before_it_leaves_or_from_the_road(outside: Server) -> None:
    outside.luck.sure = {("on the road", "S-2")}
    for reference, status in (("S-1", "recalled"), ("S-2", "returning")):
        parcel = calls.post("/parcels", {"reference": reference}, key=reference)
        path = f"/parcels/{parcel['tracking_number']}/recall"
        assert {calls.post(path, {"reference": reference})["status"] for _ in range(2)} == {status}
    assert [parcel["status"] for parcel in outside.ledger.as_dict()["parcels"]].count("recalled") == 1


def test_an_address_that_the_carrier_does_not_go_to_is_refused_for_good(outside: Server) -> None:
    outside.luck.sure = {("undeliverable", "S-1")}
    for _ in range(2):
        assert refusal("/parcels", {"reference": "S-1"}) == (422, "undeliverable")
    with pytest.raises(calls.RefusedError, match=r"^GET /parcels was refused: not_found$"):
        calls.get("/parcels", key="k1")


# --- what goes wrong --------------------------------------------------------------------------


def test_an_answer_that_is_lost_is_given_when_asked_again(outside: Server) -> None:
    plan(outside, "charge", Mood.LOST)
    with pytest.raises(calls.NoAnswerError, match=r"^no answer to POST /charges$"):
        calls.post("/charges", CHARGE, key="k1")
    assert charges(outside) == [("S-1", 4000, None)]
    assert calls.post("/charges", CHARGE, key="k1")["amount_minor"] == 4000
    assert len(charges(outside)) == 1


def test_an_answer_that_comes_twice_is_one_answer(outside: Server) -> None:
    plan(outside, "charge", Mood.TWICE)
    assert calls.post("/charges", CHARGE, key="k1")["amount_minor"] == 4000
    assert len(charges(outside)) == 1


def test_a_slow_answer_is_an_answer(outside: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SLOW_SECONDS", 0.05)
    plan(outside, "charge", Mood.SLOW)
    started = time.monotonic()
    assert calls.post("/charges", CHARGE, key="k1")["amount_minor"] == 4000
    assert time.monotonic() - started >= 0.05


def test_a_server_that_is_down_does_nothing(outside: Server) -> None:
    outside.luck.down = range(1, 3)
    for _ in range(2):
        with pytest.raises(calls.UnavailableError, match=r"^POST /charges: not now, said the server$"):
            calls.post("/charges", CHARGE, key="k1")
    assert charges(outside) == []
    calls.post("/charges", CHARGE, key="k1")
    assert len(charges(outside)) == 1


def test_who_waits_in_vain_is_known_until_they_hang_up(outside: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    plan(outside, "charge", Mood.STALLED)
    monkeypatch.setattr(calls, "TIMEOUT", 0.3)
    waiting = threading.Thread(target=wait_in_vain)
    waiting.start()
    seen = until(lambda: calls.get("/stalled")["stalled"])
    waiting.join()
    assert [entry["reference"] for entry in seen] == ["S-1"]
    assert until(lambda: not calls.get("/stalled")["stalled"])
    assert len(charges(outside)) == 1


def wait_in_vain() -> None:
    with pytest.raises(calls.NoAnswerError):
        calls.post("/charges", CHARGE, key="k1")


def until(look: Any) -> Any:
    """What `look` finds, when it finds something."""
    end = time.monotonic() + 20
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def test_what_was_planned_happens_first_and_then_all_is_fine() -> None:
    luck = Luck(moods={("charge", "S-1"): [Mood.LOST, Mood.DOWN]})
    assert [luck.mood("charge", "S-1") for _ in range(3)] == [Mood.LOST, Mood.DOWN, Mood.FINE]
    assert luck.mood("refund", "S-1") == luck.mood("charge", "S-2") == Mood.FINE


def test_the_same_seed_brings_the_same_bad_luck_and_another_one_another() -> None:
    assert drawn(7) == drawn(7) != drawn(8)
    happened = Counter(mood for moods in drawn(7) for mood in moods)
    assert set(happened) == {Mood.FINE, Mood.LOST, Mood.SLOW, Mood.TWICE, Mood.DOWN}
    assert happened[Mood.FINE] > 400


def drawn(seed: int) -> list[Sequence[Mood]]:
    luck = Luck(seed)
    return [[luck.mood("charge", f"S-{number}") for _ in range(2)] for number in range(250)]


# --- HTTP -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "answer"),
    [
        ("POST", "/charges", "{}", (400, b'{"error": "reference_missing"}')),
        ("POST", "/charges", "[]", (400, b'{"error": "not_a_json_object"}')),
        ("POST", "/charges", "{", (400, b'{"error": "not_a_json_object"}')),
        ("POST", "/page", '{"reference": "S-1", "amount_minor": 1, "currency": "EUR"}', None),
        ("GET", "/nowhere", None, (404, b'{"error": "not_found"}')),
        ("GET", "/parcels/PX_0", None, (404, b'{"error": "not_found"}')),
    ],
)
def test_a_request_that_makes_no_sense_is_told_so(
    outside: Server, method: str, path: str, body: str | None, answer: tuple[int, bytes] | None
) -> None:
    connection = HTTPConnection("127.0.0.1", outside.server_port, timeout=20)
    connection.request(method, path, body)
    response = connection.getresponse()
    assert (response.status, response.read()) == (answer or (400, b'{"error": "idempotency_key_missing"}'))
    connection.close()


def test_the_server_is_a_process_that_ends_when_its_parent_lets_go(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite3"
    ledger.write_text("what an earlier run left")
    command = [sys.executable, "-m", "example_project.outside", "--with-parent", "--fresh", "--ledger", str(ledger)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        connection = HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/ledger")
        assert connection.getresponse().read() == b'{"charges": [], "parcels": [], "counts": {}}'
        connection.close()
    assert process.returncode == 0
