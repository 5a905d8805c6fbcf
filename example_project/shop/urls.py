"""Pages of the shop."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "shop"

urlpatterns = [
    path("", views.place_order, name="place_order"),
    path("orders/<uuid:token>/", views.order, name="order"),
    path("orders/<uuid:token>/pay/", views.simulated_payment_page, name="pay"),
    path("orders/<uuid:token>/cancel/", views.cancel, name="cancel"),
    path("reviews/", views.reviews, name="reviews"),
    path("reviews/<int:pk>/", views.decide, name="decide"),
    path("webhooks/payments/", views.payment_webhook, name="payment_webhook"),
]
