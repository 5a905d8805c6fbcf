"""The shop in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from .models import Order, OrderLine, Payment, Price, Product, Refund, Shipment

if TYPE_CHECKING:
    from django.http import HttpRequest

    # Generic for the type checker only: Django's own classes take no parameters.
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    from django.contrib.admin import ModelAdmin, TabularInline


class PriceInline(TabularInline):
    model = Price
    extra = 0


class OrderLineInline(TabularInline):
    model = OrderLine
    extra = 0


@admin.register(Product)
class ProductAdmin(ModelAdmin):
    list_display = ["sku", "name", "stock", "received"]
    search_fields = ["sku", "name"]
    inlines = [PriceInline]


class ReadOnlyAdmin(ModelAdmin):
    """What the workflow writes is looked at here, not changed: a change would be no part of any order's history."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    list_display = ["number", "customer", "total", "status", "reminders", "placed_at"]
    list_filter = ["status", "currency"]
    search_fields = ["number", "customer", "email"]
    inlines = [OrderLineInline]


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = ["provider_id", "order", "amount", "status", "received_at"]
    list_filter = ["status", "currency"]
    list_select_related = ["order"]


@admin.register(Refund)
class RefundAdmin(ReadOnlyAdmin):
    list_display = ["provider_id", "payment", "refunded_at"]
    list_select_related = ["payment"]


@admin.register(Shipment)
class ShipmentAdmin(ReadOnlyAdmin):
    list_display = ["tracking_number", "order", "status", "shipped_at"]
    list_filter = ["status"]
    list_select_related = ["order"]
