"""Give JSON values their types back, as the annotations of a dataclass tell them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

_FROM_JSON: Mapping[type, Callable[[Any], Any]] = {
    Decimal: lambda number: Decimal(str(number)),
    UUID: UUID,
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    timedelta: lambda seconds: timedelta(seconds=seconds),
    float: float,  # a database may hand 1.0 back as 1
}


def restore(kind: Any, value: Any) -> Any:
    """`value` as the annotation `kind` has it, always a copy. What `kind` says nothing about stays as it is.

    Raises ValueError where the stored value can't be of that type.
    """
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return restore(args[0], value)
    if origin in (Union, UnionType):
        return _restored_union(args, value)
    if isinstance(value, list):
        return _restored_list(origin or kind, args, value)
    if isinstance(value, dict):
        return _restored_dict(kind, args, value)
    return _restored_scalar(kind, value)


def restore_field(owner: type, name: str, value: Any) -> Any:
    """The value of a field of the dataclass `owner`; a name that it does not have stays as it is."""
    try:
        return restore(_annotations(owner).get(name, Any), value)
    except ValueError as error:
        raise ValueError(f"{owner.__name__}.{name}: {error}") from error


@cache
def _annotations(owner: type) -> Mapping[str, Any]:
    return get_type_hints(owner)


def _restored_union(kinds: tuple[Any, ...], value: Any) -> Any:
    """As the first of `kinds` that makes something else of the value; JSON's own types fit as they are."""
    plain = restore(Any, value)
    for kind in kinds if value is not None else ():
        try:
            restored = restore(kind, value)
        except ValueError:
            continue
        if type(restored) is not type(plain) or restored != plain:
            return restored
    return plain


def _restored_list(kind: Any, args: tuple[Any, ...], value: list[Any]) -> list[Any] | tuple[Any, ...]:
    if kind is tuple and args and args[-1] is not Ellipsis:
        return tuple(restore(arg, item) for arg, item in zip(args, value, strict=True))
    items = [restore(args[0] if args else Any, item) for item in value]
    return tuple(items) if kind is tuple else items


def _restored_dict(kind: Any, args: tuple[Any, ...], value: dict[str, Any]) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        make: Callable[..., Any] = kind
        return make(**{field.name: _restored_argument(kind, field, value) for field in fields(kind) if field.init})
    of_values = args[-1] if args else Any
    return {key: restore(of_values, item) for key, item in value.items()}


def _restored_argument(owner: type, field: Field[Any], stored: dict[str, Any]) -> Any:
    """A field that was not there when the value was stored gets its default, or None."""
    if field.name in stored:
        return restore_field(owner, field.name, stored[field.name])
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _restored_scalar(kind: Any, value: Any) -> Any:
    if value is None or isinstance(value, bool) or not isinstance(kind, type):
        return value
    convert = kind if issubclass(kind, Enum) else _FROM_JSON.get(kind)
    if convert is None:
        return value
    try:
        return convert(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"the stored {type(value).__name__} is no {kind.__name__}") from error
