"""The carrier: takes parcels, prints their labels when it gets round to it, and calls parcels back."""

from __future__ import annotations

from typing import Any

from .ledger import NOT_FOUND, Answer, name_for
from .requests import Request, Route

PARCEL = "SELECT tracking_number, status, looks_to_label FROM parcels WHERE "


def book(request: Request) -> Answer:
    """POST /parcels: a parcel to fetch. 201, or 422 if it can't be delivered there."""
    reference, luck = request.reference, request.luck

    def carry_out() -> Answer:
        if luck.happens("undeliverable", reference, percent=4):
            return Answer(422, {"error": "undeliverable"})
        number = name_for("px", request.key).upper()
        looks = 3 if luck.happens("slow label", reference, percent=12) else 0
        request.ledger.write("INSERT INTO parcels VALUES (?, ?, ?, 'booked', ?)", number, request.key, reference, looks)
        return Answer(201, _told({"tracking_number": number, "status": "booked", "looks_to_label": looks}))

    return request.ledger.once("parcel", request.key, {"reference": reference}, carry_out)


def look(request: Request) -> Answer:
    """GET /parcels/<number>: how it stands. Each look brings the label nearer."""
    with request.ledger.transaction():
        request.ledger.write(
            "UPDATE parcels SET looks_to_label = max(looks_to_label - 1, 0) WHERE tracking_number = ?", request.name
        )
        return _one(request, "tracking_number", request.name)


def find(request: Request) -> Answer:
    """GET /parcels?key=…: the parcel that was booked under that key."""
    return _one(request, "key", request.query.get("key", ""))


def recall(request: Request) -> Answer:
    """POST /parcels/<number>/recall: don't deliver it. One that is on the road already turns round.

    This needs no key: a parcel that is called back twice has been called back.
    """
    with request.ledger.transaction():
        on_the_road = request.luck.happens("on the road", request.reference, percent=30)
        status = "returning" if on_the_road else "recalled"
        request.ledger.write("UPDATE parcels SET status = ? WHERE tracking_number = ?", status, request.name)
        return _one(request, "tracking_number", request.name)


def _one(request: Request, column: str, value: str) -> Answer:
    found = request.ledger.row(f"{PARCEL}{column} = ?", value)
    return NOT_FOUND if found is None else Answer(200, _told(found))


def _told(parcel: dict[str, Any]) -> dict[str, Any]:
    return {
        "tracking_number": parcel["tracking_number"],
        "status": parcel["status"],
        "has_label": parcel["looks_to_label"] == 0,
    }


ROUTES = (
    Route("POST", r"/parcels", book, "parcel"),
    Route("POST", r"/parcels/(\w+)/recall", recall, "recall"),
    Route("GET", r"/parcels", find),
    Route("GET", r"/parcels/(\w+)", look),
)
