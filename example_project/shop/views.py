"""The shop's pages. None of them does the work of an order: they start its workflow and send it signals."""

from __future__ import annotations

import time
import uuid

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from workflow_engine import IdempotencyConflictError, InvalidStateError, NoLiveInstanceError, engine
from workflow_engine.models import WorkflowInstance, WorkflowSignal

from .calls import UnavailableError
from .forms import CurrencyForm, DecisionForm, OrderForm
from .models import Order, OrderStatus, Payment
from .payment_page import PaymentPage
from .webhooks import SIGNATURE_HEADER, MalformedEventError, PaymentEvent, SignatureError, verify
from .workflows import PAYMENT_DECLINED, PAYMENT_SUCCEEDED, REVIEW_DECIDED, start_fulfilment

# --- customers --------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def place_order(request: HttpRequest) -> HttpResponse:
    currency = CurrencyForm.chosen(request.GET.get("currency"))
    form = OrderForm(request.POST or None, currency=currency)
    if form.is_valid():
        # One transaction: there is never an order without its workflow, nor a workflow without its order.
        with transaction.atomic():
            placed = Order.objects.place(
                form.lines(),
                number=f"W-{uuid.uuid4().hex[:8].upper()}",
                customer=form.cleaned_data["customer"],
                email=form.cleaned_data["email"],
                card=form.cleaned_data["card"],
                currency=currency,
            )
            start_fulfilment(placed, actor=placed.email)
        return redirect(placed)
    context = {"form": form, "currency_form": CurrencyForm(initial={"currency": currency}), "currency": currency}
    return render(request, "shop/place_order.html", context)


@require_GET
def order(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    found = get_object_or_404(Order, token=token)
    context = {
        "order": found,
        "lines": found.lines.select_related("product", "order"),
        "payments": found.payments.select_related("refund"),
        "instance": WorkflowInstance.objects.for_subject(found).order_by("-created_at").first(),
        "can_pay": settings.SHOP_DEMO and found.status == OrderStatus.AWAITING_PAYMENT,
    }
    return render(request, "shop/order.html", context)


@require_POST
def simulated_payment_page(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """Stands in for the provider's own page, where a customer types a card number: demo only."""
    if not settings.SHOP_DEMO:
        raise Http404
    found = get_object_or_404(Order, token=token, status=OrderStatus.AWAITING_PAYMENT)
    page = PaymentPage()
    attempt = found.payments.count() + 1
    try:
        if "decline" in request.POST:
            page.decline(found, attempt=attempt)
        else:
            page.pay(found, attempt=attempt)
    except UnavailableError as error:
        messages.error(request, f"{error}. Is `manage.py outside` running, which plays the payment provider?")
        return redirect(found)
    page.deliver()
    messages.success(request, "The provider has told the shop. A worker takes it from here.")
    return redirect(found)


@require_POST
def cancel(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """The customer no longer wants it. What was done so far is undone: the money goes back, the parcel comes back."""
    found = get_object_or_404(Order, token=token)
    instance = WorkflowInstance.objects.live().for_subject(found).first()
    if instance is None or not found.can_be_cancelled:
        messages.error(request, f"{found.number} can't be cancelled: it is {found.get_status_display()}.")
        return redirect(found)
    try:
        engine.cancel(instance, reason="Cancelled by the customer.", actor=found.email)
    except InvalidStateError:
        messages.error(request, f"{found.number} is being cancelled, or over, already.")
    else:
        messages.success(request, "Cancelled. A worker undoes what was done.")
    return redirect(found)


# --- the payment provider ---------------------------------------------------------------------


@csrf_exempt  # Another server posts here; the signature says who it is.
@require_POST
def payment_webhook(request: HttpRequest) -> HttpResponse:
    """200 tells the provider that the event is safe with us; 5xx asks it to send the event again later."""
    header = request.headers.get(SIGNATURE_HEADER, "")
    try:
        verify(request.body, header, secret=settings.SHOP_WEBHOOK_SECRET, now=time.time())
        event = PaymentEvent.from_body(request.body)
    except (SignatureError, MalformedEventError) as error:
        return _answer(400, str(error))
    if event.kind not in {PAYMENT_SUCCEEDED, PAYMENT_DECLINED}:
        return _answer(200, "Not a kind of event we act on.")
    order = Order.objects.filter(number=event.order).first()
    if order is None:
        return _answer(404, "There is no such order.")
    return _signal_payment(order, event)


def _signal_payment(order: Order, event: PaymentEvent) -> HttpResponse:
    """The event's id is the idempotency key: an event that is sent twice is one signal."""
    data = {"payment_id": event.payment_id, "amount_minor": event.amount_minor, "currency": event.currency}
    try:
        engine.signal_subject(order, event.kind, data, idempotency_key=event.id, actor="payment provider")
    except NoLiveInstanceError:
        if Payment.objects.filter(provider_id=event.payment_id).exists():
            return _answer(200, "Known, and long since acted on.")
        return _answer(503, "The order's workflow is not running; send this again later.")
    except IdempotencyConflictError:
        return _answer(409, "An event with this id and other content came before.")
    return _answer(200, "Thank you.")


def _answer(status: int, text: str) -> HttpResponse:
    headers = {"Retry-After": "60"} if status == 503 else {}
    return HttpResponse(text, status=status, content_type="text/plain; charset=utf-8", headers=headers)


# --- staff ------------------------------------------------------------------------------------


@require_GET
@login_required
def reviews(request: HttpRequest) -> HttpResponse:
    _staff_only(request)
    # What was decided a moment ago waits for a worker, no longer for a person.
    decided = WorkflowSignal.objects.unconsumed().filter(name=REVIEW_DECIDED)
    waiting = WorkflowInstance.objects.live().awaiting(REVIEW_DECIDED).exclude(pk__in=decided.values("instance"))
    due = {int(instance.subject_id): instance.due_at for instance in waiting}
    orders = Order.objects.filter(pk__in=due).prefetch_related("lines__product").order_by("pk")
    context = {"reviews": [(order, due[order.pk]) for order in orders]}
    return render(request, "shop/reviews.html", context)


@require_POST
@login_required
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    _staff_only(request)
    form = DecisionForm(request.POST)
    order = get_object_or_404(Order, pk=pk, status=OrderStatus.IN_REVIEW)
    if not form.is_valid():
        messages.error(request, "Choose approve or reject.")
        return redirect("shop:reviews")
    approved = form.cleaned_data["decision"] == "approve"
    try:
        engine.signal_subject(
            order,
            REVIEW_DECIDED,
            {"approved": approved},
            # One decision per order: a colleague who is a second later and of another mind is told so.
            idempotency_key=f"review-{order.pk}",
            actor=request.user,
        )
    except (IdempotencyConflictError, NoLiveInstanceError):
        messages.error(request, f"{order.number} has been decided already.")
    else:
        messages.success(request, f"{order.number}: {'approved' if approved else 'rejected'}.")
    return redirect("shop:reviews")


def _staff_only(request: HttpRequest) -> None:
    if not request.user.is_staff:
        raise PermissionDenied
