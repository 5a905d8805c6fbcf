"""The payment provider: charges stored cards, has a payment page, gives money back."""

from __future__ import annotations

from typing import Any

from .ledger import NOT_FOUND, Answer, name_for
from .requests import Request, Route

DECLINED = "card_declined"
"""A card whose name begins like this is always declined, as with the test cards of real providers."""

CHARGE = "SELECT id, reference, amount_minor, currency, refund FROM charges WHERE "


def charge(request: Request) -> Answer:
    """POST /charges: take the money from a stored card. 201, or 402 if the card is declined."""
    asked = {name: request.get(name) for name in ("reference", "card", "amount_minor", "currency")}

    def carry_out() -> Answer:
        if str(asked["card"]).startswith(DECLINED):
            return Answer(402, {"error": DECLINED})
        return _take(request, asked)

    return request.ledger.once("charge", request.key, asked, carry_out)


def pay_on_page(request: Request) -> Answer:
    """POST /page: the customer pays on the provider's own page. The shop hears of it by webhook."""
    asked = {name: request.get(name) for name in ("reference", "amount_minor", "currency")}
    return request.ledger.once("page", request.key, asked, lambda: _take(request, asked))


def refund(request: Request) -> Answer:
    """POST /charges/<id>/refund: give a charge back, all of it. 201, or 409 with the refund if that was done before."""

    def carry_out() -> Answer:
        found = request.ledger.row(CHARGE + "id = ?", request.name)
        if found is None:
            return NOT_FOUND
        if found["refund"]:
            return Answer(409, {"error": "already_refunded", "refund": found["refund"]})
        name = name_for("re", request.key)
        request.ledger.write("UPDATE charges SET refund = ? WHERE id = ?", name, request.name)
        return Answer(201, {"refund": name})

    return request.ledger.once("refund", request.key, {"charge": request.name}, carry_out)


def find(request: Request) -> Answer:
    """GET /charges?key=… or ?reference=…: what was charged under that key, or for that order."""
    column = "key" if "key" in request.query else "reference"
    found = request.ledger.rows(f"{CHARGE}{column} = ? ORDER BY id", request.query.get(column, ""))
    return Answer(200, {"charges": found})


def _take(request: Request, asked: dict[str, Any]) -> Answer:
    name = name_for("pay", request.key)
    values = (name, request.key, asked["reference"], asked["amount_minor"], asked["currency"])
    request.ledger.write("INSERT INTO charges VALUES (?, ?, ?, ?, ?, NULL)", *values)
    return Answer(201, {"id": name, "amount_minor": asked["amount_minor"], "currency": asked["currency"]})


ROUTES = (
    Route("POST", r"/charges", charge, "charge"),
    Route("POST", r"/charges/(\w+)/refund", refund, "refund"),
    Route("POST", r"/page", pay_on_page),
    Route("GET", r"/charges", find),
)
