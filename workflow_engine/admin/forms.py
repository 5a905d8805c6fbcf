"""What a person fills in before an instance is moved."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from workflow_engine import serialization
from workflow_engine.exceptions import NotSerializableError

_OTHER = "other"


class ActionForm(forms.Form):
    """Nothing to fill in. `offered`: the awaited signals, each with what is said of it."""

    def __init__(self, data: Any = None, *, offered: Iterable[tuple[str, str | Promise]] = ()) -> None:
        super().__init__(data)
        self.offered = list(offered)

    def arguments(self) -> dict[str, Any]:
        """For the engine's verb, once the form is valid."""
        return dict(self.cleaned_data)


class ReasonForm(ActionForm):
    """Why, for the history."""

    reason = forms.CharField(
        label=_("Reason"), required=False, max_length=200, help_text=_("For the history; may stay empty.")
    )


class CancelForm(ReasonForm):
    """Also whether to undo."""

    field_order = ("undo", "reason")
    undo = forms.ChoiceField(
        label=_("What was done so far"),
        choices=[("yes", _("Undo it, then end")), ("no", _("Leave it as it is, and end"))],
        widget=forms.RadioSelect,
        initial="yes",
    )

    def arguments(self) -> dict[str, Any]:
        return {"reason": self.cleaned_data["reason"], "compensate": self.cleaned_data["undo"] == "yes"}


class SignalForm(ActionForm):
    """Which signal, with which data."""

    name = forms.ChoiceField(label=_("Signal"), widget=forms.RadioSelect)
    other = forms.CharField(label=_("Name of another signal"), required=False, max_length=200)
    payload = forms.CharField(
        label=_("Data"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "cols": 60, "spellcheck": "false", "class": "wf-json"}),
        help_text=_('JSON, for example {"approved": true}. Empty: no data.'),
    )

    def __init__(self, data: Any = None, *, offered: Iterable[tuple[str, str | Promise]] = ()) -> None:
        super().__init__(data, offered=offered)
        names: Any = self.fields["name"]
        # A signal named like the last choice would be hidden by it.
        names.choices = [
            *((f"={name}", label) for name, label in self.offered),
            (_OTHER, _("another one, named below")),
        ]
        names.initial = names.choices[0][0]

    def clean_payload(self) -> Any:
        """The JSON value; None for nothing."""
        text = self.cleaned_data["payload"].strip()
        if not text:
            return None
        try:
            return serialization.to_json(json.loads(text, parse_constant=_refuse), "data")
        except json.JSONDecodeError as error:
            told = {"problem": error.msg, "line": error.lineno, "column": error.colno}
            raise forms.ValidationError(
                _("This is not JSON: %(problem)s, line %(line)d, column %(column)d."), params=told
            ) from error
        except RecursionError as error:
            raise forms.ValidationError(_("This is nested too deeply.")) from error
        except (NotSerializableError, ValueError) as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("name") == _OTHER and not cleaned.get("other"):
            self.add_error("other", _("Name the signal."))
        return cleaned

    def arguments(self) -> dict[str, Any]:
        chosen = self.cleaned_data["name"]
        name = self.cleaned_data["other"] if chosen == _OTHER else chosen.removeprefix("=")
        return {"name": name, "data": self.cleaned_data["payload"]}


def _refuse(constant: str) -> NoReturn:
    message = f"{constant} is not JSON."
    raise ValueError(message)
