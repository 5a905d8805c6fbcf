"""Forms of the shop."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from .models import Price, Product
from .money import CURRENCIES, Money

QUANTITY_LIMIT = 20
# A real shop would list the cards that this customer has stored with the payment provider.
CARDS = [
    ("", "On the payment page"),
    ("card_4242", "With a stored card"),
    ("card_declined_0002", "With a stored card that is declined"),
]


class OrderForm(forms.Form):
    """An order in one currency: a quantity field per product that has a price in it."""

    customer = forms.CharField(
        label="Your name", max_length=100, widget=forms.TextInput(attrs={"autocomplete": "name"})
    )
    email = forms.EmailField(label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "email"}))
    card = forms.ChoiceField(label="How to pay", choices=CARDS, required=False)

    def __init__(self, *args: Any, currency: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.currency = currency
        self.prices = list(Price.objects.filter(currency=currency).select_related("product").order_by("product__sku"))
        for price in self.prices:
            self.fields[self._name(price.product)] = forms.IntegerField(
                label=f"Quantity of {price.product.name}",
                min_value=0,
                max_value=QUANTITY_LIMIT,
                required=False,
                initial=0,
            )

    def shelf(self) -> list[tuple[Price, forms.BoundField]]:
        """What is for sale, each with its quantity field."""
        return [(price, self[self._name(price.product)]) for price in self.prices]

    def lines(self) -> list[tuple[Product, int, Money]]:
        """What was chosen, as `Order.objects.place` takes it."""
        chosen = ((price, self.cleaned_data.get(self._name(price.product)) or 0) for price in self.prices)
        return [(price.product, quantity, price.amount) for price, quantity in chosen if quantity]

    def clean(self) -> dict[str, Any]:
        if not self.errors and not self.lines():
            raise ValidationError("Choose at least one thing to order.")
        return self.cleaned_data

    @staticmethod
    def _name(product: Product) -> str:
        return f"quantity_{product.pk}"


class CurrencyForm(forms.Form):
    """Which currency to pay in; anything unknown is the first."""

    currency = forms.ChoiceField(label="Currency", choices=[(code, code) for code in CURRENCIES])

    @classmethod
    def chosen(cls, value: str | None) -> str:
        return value if value in CURRENCIES else CURRENCIES[0]


class DecisionForm(forms.Form):
    decision = forms.ChoiceField(choices=[("approve", "Approve"), ("reject", "Reject")])
