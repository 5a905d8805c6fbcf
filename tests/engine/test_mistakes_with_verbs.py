"""What users get wrong when they call a verb, each with the whole message that they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings

from tests.shop.models import Counter
from tests.shop.workflows import Approval, OneStep, WaitForGo
from workflow_engine import (
    ConfigurationError,
    Context,
    NotSerializableError,
    Workflow,
    engine,
    step,
)
from workflow_engine.domain.durations import shown


@pytest.mark.parametrize("context", [["a"], "text", 5, Counter])
def test_a_context_is_an_object(context: Any) -> None:
    with pytest.raises(NotSerializableError) as raised:
        engine.start(OneStep, context=context)

    assert str(raised.value) == f"context: must be a dict, not {type(context).__name__}"


@pytest.mark.parametrize("name", ["", "x" * 201, 5])
def test_a_signal_has_a_name_of_sensible_length(name: Any) -> None:
    instance = engine.start(WaitForGo)

    with pytest.raises(NotSerializableError) as raised:
        engine.signal(instance, name)

    assert str(raised.value) == f"signal name: must be a text of 1 to 200 characters, not {shown(name)}"


@pytest.mark.parametrize("key", [42, "", "x" * 256, b"key"])
@pytest.mark.parametrize("verb", ["start", "signal", "signal_subject"])
def test_an_idempotency_key_is_a_text_of_sensible_length(verb: str, key: Any) -> None:
    instance = engine.start(WaitForGo, subject=("shop.order", 1))
    calls: dict[str, Callable[[], Any]] = {
        "start": lambda: engine.start(WaitForGo, idempotency_key=key),
        "signal": lambda: engine.signal(instance, "go", idempotency_key=key),
        "signal_subject": lambda: engine.signal_subject(("shop.order", 1), "go", idempotency_key=key),
    }

    with pytest.raises(NotSerializableError) as raised:
        calls[verb]()

    assert str(raised.value) == f"idempotency key: must be a text of 1 to 255 characters, not {shown(key)}"


@pytest.mark.parametrize("key", ["a\x00b", "a\ud800"])
def test_an_idempotency_key_passes_the_gate_like_any_text(key: str) -> None:
    with pytest.raises(NotSerializableError):
        engine.start(OneStep, idempotency_key=key)


@override_settings(WORKFLOW_ENGINE={"SIGNAL_BUFFER_EARLY": False})
def test_an_unknown_setting_is_an_error_that_knows_what_was_meant() -> None:
    with pytest.raises(ConfigurationError) as raised:
        engine.start(Approval)

    assert str(raised.value) == (
        "WORKFLOW_ENGINE has no setting 'SIGNAL_BUFFER_EARLY'. Did you mean 'SIGNALS_BUFFER_EARLY'?"
    )


def test_a_base_that_is_no_workflow_of_its_own_can_not_be_started() -> None:
    class Base(Workflow):
        abstract = True

        @step
        def work(self, ctx: Context) -> None: ...

    with pytest.raises(Exception, match="Base") as raised:
        engine.start(Base)

    assert str(raised.value) == (
        "Base: it is abstract, a base for other workflows. Start one of the workflows that are made of it."
    )
