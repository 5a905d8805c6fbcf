from __future__ import annotations

import json

import pytest

from example_project.shop.webhooks import MalformedEventError, PaymentEvent, SignatureError, sign, verify

SECRET = "s3cret"
BODY = '{"customer": "Zoë"}'.encode()
NOW = 1_700_000_000
GOOD = sign(BODY, secret=SECRET, timestamp=NOW)
EVENT = PaymentEvent(
    id="evt_1", kind="payment_succeeded", order="S-1", payment_id="pay_1", amount_minor=4000, currency="EUR"
)


def refusal(*, body: bytes = BODY, header: str = GOOD, secret: str = SECRET, now: float = NOW) -> str:
    with pytest.raises(SignatureError) as caught:
        verify(body, header, secret=secret, now=now)
    return str(caught.value)


def test_what_was_signed_with_the_secret_passes_for_five_minutes() -> None:
    for now in (NOW - 300, NOW, NOW + 300):
        verify(BODY, GOOD, secret=SECRET, now=now)


def test_the_signature_is_the_documented_one() -> None:
    # Any provider's library in any language comes to the same: hmac-sha256 over "<t>.<body>".
    assert sign(b"{}", secret=SECRET, timestamp=1) == (
        "t=1,v1=3aef069923b329162e71de34136b0ef6ee4b9253867069748da3fc3680c71406"
    )


@pytest.mark.parametrize("header", ["", "t=,v1=", "nonsense", "v1=" + "0" * 64, f"{GOOD},v1=0", GOOD.upper()])
def test_a_missing_or_malformed_signature_is_refused(header: str) -> None:
    assert refusal(header=header) == "The signature is missing or malformed."


def test_another_secret_body_or_time_does_not_fit() -> None:
    for changed in ({"secret": "other"}, {"body": BODY + b" "}, {"header": GOOD.replace(f"t={NOW}", f"t={NOW + 1}")}):
        assert refusal(**changed) == "The signature does not fit the body."


@pytest.mark.parametrize("now", [NOW + 301, NOW - 301])
def test_a_recorded_request_can_not_be_played_again_later(now: int) -> None:
    assert refusal(now=now) == "The signature is too old, or from the future."


def test_an_event_survives_the_way_over_the_wire() -> None:
    assert PaymentEvent.from_body(EVENT.to_body()) == EVENT


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"\xff", b"{}", b'{"id": "evt_1"}'])
def test_what_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedEventError, match=r"^The body is not a payment event\.$"):
        PaymentEvent.from_body(body)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": ""}, "id is not an identifier."),
        ({"id": "a\u0000b"}, "id is not an identifier."),
        ({"kind": 3}, "kind is not an identifier."),
        ({"order": ["S-1"]}, "order is not an identifier."),
        ({"payment_id": "x" * 65}, "payment_id is not an identifier."),
        ({"amount_minor": 0}, "amount_minor is not a positive number of minor units."),
        ({"amount_minor": True}, "amount_minor is not a positive number of minor units."),
        ({"amount_minor": 40.0}, "amount_minor is not a positive number of minor units."),
        ({"currency": "DOGE"}, "currency is not one we sell in."),
        ({"currency": ["EUR"]}, "currency is not one we sell in."),
    ],
)
def test_an_event_with_a_wrong_value_is_refused(change: dict[str, object], message: str) -> None:
    body = json.dumps(EVENT.as_dict() | change).encode()
    with pytest.raises(MalformedEventError) as caught:
        PaymentEvent.from_body(body)
    assert str(caught.value) == message
