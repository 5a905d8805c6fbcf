"""The shop's own tables. What must hold for every row is a constraint, so the database holds us to it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone

from .money import CURRENCIES, Money

CURRENCY_CHOICES = [(code, code) for code in CURRENCIES]


class OutOfStockError(Exception):
    """There is less of a product than an order asks for."""

    def __init__(self, sku: str) -> None:
        self.sku = sku
        super().__init__(f"Not enough of {sku} in stock.")


class ProductQuerySet(models.QuerySet["Product"]):
    def reserve(self, order: Order) -> None:
        """Take an order's lines from the stock, all or none. Raises OutOfStockError."""
        with transaction.atomic():
            for line in order.lines.select_related("product").order_by("product_id"):
                free = self.filter(pk=line.product_id, stock__gte=line.quantity)
                if not free.update(stock=F("stock") - line.quantity):
                    raise OutOfStockError(line.product.sku)

    def release(self, order: Order) -> None:
        """Put an order's lines back."""
        for line in order.lines.order_by("product_id"):
            self.filter(pk=line.product_id).update(stock=F("stock") + line.quantity)


class Product(models.Model):
    sku = models.CharField(max_length=20, unique=True)
    name = models.CharField(max_length=100)
    received = models.PositiveIntegerField(help_text="Units ever delivered to the warehouse.")
    stock = models.IntegerField(help_text="Units that can still be sold.")

    objects = ProductQuerySet.as_manager()

    class Meta:
        ordering = ["sku"]
        constraints = [
            models.CheckConstraint(condition=Q(stock__gte=0), name="product_stock_not_negative"),
            models.CheckConstraint(condition=Q(stock__lte=F("received")), name="product_stock_at_most_received"),
        ]

    def __str__(self) -> str:
        return f"{self.sku} {self.name}"


class Price(models.Model):
    """What a product costs in one currency. A product without a price in it is not sold in that currency."""

    product = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="prices")
    currency = models.CharField(max_length=3, choices=CURRENCY_CHOICES)
    amount_minor = models.PositiveIntegerField(help_text="In minor units: cents, öre, yen.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["product", "currency"], name="price_once_per_product_and_currency"),
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="price_positive"),
        ]

    def __str__(self) -> str:
        return str(self.amount)

    @property
    def amount(self) -> Money:
        return Money(self.amount_minor, self.currency)


class OrderStatus(models.TextChoices):
    PLACED = "placed", "placed"
    RESERVED = "reserved", "stock reserved"
    IN_REVIEW = "in_review", "in review"
    CHARGING = "charging", "card being charged"
    AWAITING_PAYMENT = "awaiting_payment", "awaiting payment"
    PAID = "paid", "paid"
    SHIPPED = "shipped", "shipped"
    CLOSED = "closed", "closed"
    OUT_OF_STOCK = "out_of_stock", "out of stock"
    REJECTED = "rejected", "rejected in review"
    UNPAID = "unpaid", "never paid"
    CANCELLED = "cancelled", "cancelled"


class OrderQuerySet(models.QuerySet["Order"]):
    @transaction.atomic
    def place(self, lines: Iterable[tuple[Product, int, Money]], **fields: Any) -> Order:
        """Create an order with its lines (product, quantity, unit price) and their sum."""
        lines = list(lines)
        fields["total_minor"] = sum(quantity * price.minor for _, quantity, price in lines)
        order = self.create(**fields)
        OrderLine.objects.bulk_create(
            OrderLine(order=order, product=product, quantity=quantity, unit_price_minor=price.minor)
            for product, quantity, price in lines
        )
        return order


class Order(models.Model):
    # The sums that must add up are over these.
    HOLDING_STOCK = (
        OrderStatus.RESERVED,
        OrderStatus.IN_REVIEW,
        OrderStatus.CHARGING,
        OrderStatus.AWAITING_PAYMENT,
        OrderStatus.PAID,
        OrderStatus.SHIPPED,
        OrderStatus.CLOSED,
    )
    # While one of these stands, there is something to undo and somebody to undo it.
    CANCELLABLE = HOLDING_STOCK[:-1]
    SETTLED = (OrderStatus.PAID, OrderStatus.SHIPPED, OrderStatus.CLOSED)
    SENT = (OrderStatus.SHIPPED, OrderStatus.CLOSED)
    ENDED = (
        OrderStatus.CLOSED,
        OrderStatus.OUT_OF_STOCK,
        OrderStatus.REJECTED,
        OrderStatus.UNPAID,
        OrderStatus.CANCELLED,
    )

    number = models.CharField(max_length=20, unique=True)
    # A customer has no login: whoever knows this sees the order, and it can't be guessed as a number can.
    token = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    customer = models.CharField(max_length=100)
    email = models.EmailField()
    card = models.CharField(
        max_length=40, blank=True, help_text="The provider's name for the stored card that pays; else by payment page."
    )
    currency = models.CharField(max_length=3, choices=CURRENCY_CHOICES)
    total_minor = models.PositiveIntegerField(help_text="In minor units: cents, öre, yen.")
    status = models.CharField(max_length=20, choices=OrderStatus.choices, default=OrderStatus.PLACED)
    reminders = models.PositiveSmallIntegerField(default=0, help_text="Payment reminders sent.")
    reviewed_by = models.CharField(max_length=150, blank=True)
    note = models.CharField(max_length=200, blank=True, help_text="Why the order ended as it did.")
    placed_at = models.DateTimeField(default=timezone.now)

    objects = OrderQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(total_minor__gt=0), name="order_total_positive"),
            models.CheckConstraint(condition=Q(reminders__lte=3), name="order_at_most_three_reminders"),
            models.CheckConstraint(condition=Q(status__in=OrderStatus.values), name="order_status_known"),
        ]

    def __str__(self) -> str:
        return self.number

    def get_absolute_url(self) -> str:
        return reverse("shop:order", args=[self.token])

    @property
    def total(self) -> Money:
        return Money(self.total_minor, self.currency)

    @property
    def is_over(self) -> bool:
        return self.status in self.ENDED

    @property
    def can_be_cancelled(self) -> bool:
        return self.status in self.CANCELLABLE

    def move_to(self, status: OrderStatus, **fields: Any) -> None:
        """Write the new status, and `fields` with it."""
        self.status = status
        for name, value in fields.items():
            setattr(self, name, value)
        self.save(update_fields=["status", *fields])


class OrderLine(models.Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, on_delete=models.PROTECT)
    quantity = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    unit_price_minor = models.PositiveIntegerField(help_text="As agreed when the order was placed.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["order", "product"], name="line_once_per_product"),
            models.CheckConstraint(condition=Q(quantity__gt=0), name="line_quantity_positive"),
            models.CheckConstraint(condition=Q(unit_price_minor__gt=0), name="line_price_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} x {self.product_id}"

    @property
    def unit_price(self) -> Money:
        return Money(self.unit_price_minor, self.order.currency)

    @property
    def sum(self) -> Money:
        return Money(self.quantity * self.unit_price_minor, self.order.currency)


class PaymentStatus(models.TextChoices):
    SUCCEEDED = "succeeded", "succeeded"
    DECLINED = "declined", "declined"


class Payment(models.Model):
    """One thing that came of asking a customer for the money: it was paid, or declined."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="payments")
    provider_id = models.CharField(max_length=64, unique=True, help_text="The provider's name for this payment.")
    status = models.CharField(max_length=10, choices=PaymentStatus.choices)
    amount_minor = models.PositiveIntegerField(help_text="In minor units: cents, öre, yen.")
    currency = models.CharField(max_length=3, choices=CURRENCY_CHOICES)
    received_at = models.DateTimeField()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="payment_positive"),
            models.CheckConstraint(condition=Q(status__in=PaymentStatus.values), name="payment_status_known"),
            # Nobody pays twice for one order. (MySQL and MariaDB have no such index and leave it out.)
            models.UniqueConstraint(
                fields=["order"], condition=Q(status=PaymentStatus.SUCCEEDED), name="payment_succeeds_once_per_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider_id}: {self.amount} {self.status}"

    @property
    def amount(self) -> Money:
        return Money(self.amount_minor, self.currency)


class Refund(models.Model):
    """A payment that was given back, all of it. One payment has one at most: the database holds us to that too."""

    payment = models.OneToOneField(Payment, on_delete=models.PROTECT, related_name="refund")
    provider_id = models.CharField(max_length=64, unique=True, help_text="The provider's name for this refund.")
    refunded_at = models.DateTimeField()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.provider_id}: {self.payment.amount}"


class ShipmentStatus(models.TextChoices):
    BOOKED = "booked", "booked"
    RECALLED = "recalled", "called back in time"
    RETURNING = "returning", "on its way back"


class Shipment(models.Model):
    order = models.OneToOneField(Order, on_delete=models.PROTECT, related_name="shipment")
    tracking_number = models.CharField(max_length=30, unique=True)
    status = models.CharField(max_length=10, choices=ShipmentStatus.choices, default=ShipmentStatus.BOOKED)
    shipped_at = models.DateTimeField()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(tracking_number=""), name="shipment_has_tracking_number"),
            models.CheckConstraint(condition=Q(status__in=ShipmentStatus.values), name="shipment_status_known"),
        ]

    def __str__(self) -> str:
        return self.tracking_number
