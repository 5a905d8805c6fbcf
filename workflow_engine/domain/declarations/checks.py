"""Rules about single values of a definition, one function and one message each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from inspect import iscoroutinefunction
from typing import Any

from workflow_engine.domain.durations import shown
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.exceptions import DefinitionError, nearest

_SLUG = re.compile(r"[A-Za-z0-9_.-]{1,100}")


def check_slug(value: object, what: str, where: str) -> None:
    """Names and keys are stored, typed on command lines and put into URLs as they are."""
    if not isinstance(value, str) or not _SLUG.fullmatch(value):
        raise DefinitionError(
            where, f"{what} is {shown(value)}", "Use 1 to 100 of the characters A-Z, a-z, 0-9, '_', '.' and '-'."
        )


def check_policy(value: object, where: str) -> None:
    if value is not None and not isinstance(value, RetryPolicy):
        raise DefinitionError(where, f"retry is {shown(value)}", "Give a RetryPolicy(max_attempts=…).")


def check_not_async(function: object, where: str) -> None:
    if iscoroutinefunction(function):
        raise DefinitionError(
            where,
            "it is async, but the engine calls plain functions",
            "Write a plain def; asgiref's async_to_sync calls async code.",
        )


def check_version(value: object, where: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DefinitionError(where, f"version is {shown(value)}", "Count versions from 1.")


def check_queue(value: object, where: str) -> None:
    if not isinstance(value, str):
        raise DefinitionError(where, f"queue is {shown(value)}", 'Give the name of a queue; "" is the default one.')


def check_context_class(value: object, where: str) -> None:
    if value is not None and not (isinstance(value, type) and is_dataclass(value)):
        raise DefinitionError(where, f"context_class is {shown(value)}", "Give a class made by @dataclass.")


def check_options(given: Mapping[str, Any], known: type, where: str) -> None:
    """Refuse an option that `known`, a TypedDict, does not have."""
    for name in given:
        if name not in known.__annotations__:
            raise DefinitionError(where, f"there is no option {name!r}", nearest(name, known.__annotations__))
