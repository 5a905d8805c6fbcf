"""Give JSON values their types back, as the annotations of a dataclass tell them."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

_FROM_JSON: Mapping[type, Callable[[Any], Any]] = {
    Decimal: Decimal,
    UUID: UUID,
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    timedelta: lambda seconds: timedelta(seconds=seconds),
    float: float,  # a database may hand 1.0 back as 1
}


@cache
def hints(kind: type) -> Mapping[str, Any]:
    """The annotation of each field of the dataclass."""
    found = get_type_hints(kind)
    return types.MappingProxyType({field.name: found[field.name] for field in fields(kind) if field.init})


def restore(kind: Any, value: Any) -> Any:
    """`value` as the annotation `kind` has it, always a copy. What `kind` says nothing about stays as it is.

    Raises ValueError where the stored value can't be of that type.
    """
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return restore(args[0], value)
    if origin in (Union, types.UnionType):
        return _restored_as_one_of(args, value)
    if isinstance(value, list):
        return _restored_list(origin or kind, args, value)
    if isinstance(value, dict):
        return _restored_dict(kind, args, value)
    return _restored_scalar(kind, value)


def _restored_as_one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    """As the first of `kinds` that changes the value; plain JSON types come last, for they fit as they are."""
    if value is None:
        return None
    for kind in kinds:
        try:
            restored = restore(kind, value)
        except ValueError:
            continue
        if type(restored) is not type(value) or restored != value:
            return restored
    return deepcopy(value)


def _restored_list(kind: Any, args: tuple[Any, ...], value: list[Any]) -> list[Any] | tuple[Any, ...]:
    if kind is tuple and args and args[-1] is not Ellipsis:
        return tuple(restore(arg, item) for arg, item in zip(args, value, strict=True))
    items = [restore(args[0] if args else Any, item) for item in value]
    return tuple(items) if kind is tuple else items


def _restored_dict(kind: Any, args: tuple[Any, ...], value: dict[str, Any]) -> Any:
    if is_dataclass(kind) and isinstance(kind, type):
        make: Callable[..., Any] = kind
        return make(**{field.name: _restored_field(kind, field, value) for field in fields(kind) if field.init})
    of_values = args[1] if len(args) == 2 else Any  # noqa: PLR2004 - a mapping's keys and values
    return {key: restore(of_values, item) for key, item in value.items()}


def _restored_field(kind: type, field: Field[Any], value: dict[str, Any]) -> Any:
    if field.name in value:
        try:
            return restore(hints(kind)[field.name], value[field.name])
        except ValueError as error:
            raise ValueError(f"{kind.__name__}.{field.name}: {error}") from error
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _restored_scalar(kind: Any, value: Any) -> Any:
    if value is None or not isinstance(kind, type) or isinstance(value, bool) or type(value) is kind:
        return value
    convert = kind if issubclass(kind, Enum) else _FROM_JSON.get(kind)
    if convert is None:
        return value
    try:
        return convert(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"the stored {type(value).__name__} is no {kind.__name__}") from error
