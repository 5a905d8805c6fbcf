"""What a start is given fits the columns on every database, or is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.shop.workflows import OneStep
from workflow_engine import NotSerializableError, engine
from workflow_engine.models import WorkflowInstance


@pytest.mark.parametrize(
    ("what", "options", "limit"),
    [
        ("tenant", {"tenant": "x" * 101}, 100),
        ("queue", {"queue": "x" * 101}, 100),
        ("subject type", {"subject": ("x" * 101, 1)}, 100),
        ("subject id", {"subject": ("order", "x" * 256)}, 255),
    ],
)
def test_a_text_that_no_column_takes_is_refused(what: str, options: dict[str, Any], limit: int) -> None:
    with pytest.raises(NotSerializableError) as raised:
        engine.start(OneStep, **options)

    assert str(raised.value).startswith(f"{what}: must be a text of 1 to {limit} characters, not ")
    assert not WorkflowInstance.objects.exists()


def test_nul_in_a_tenant_is_refused() -> None:
    with pytest.raises(NotSerializableError) as raised:
        engine.start(OneStep, tenant="a\x00b")

    assert str(raised.value) == "tenant: contains NUL (\\x00), which PostgreSQL can't store; remove it"
