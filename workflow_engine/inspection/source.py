"""What can be seen in the source of a step without running it: the outcomes that it names in so many words.

Only what is certain is told: names that are literals or constants of the module. What is computed is left to the run.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from workflow_engine.domain.declarations import Declaration, Step
from workflow_engine.domain.declarations.handlers import METHODS, Handler
from workflow_engine.domain.outcomes import Await, Goto
from workflow_engine.domain.workflows import Workflow

_OTHER_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
"""They have variables of their own, which may hide what a name means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """An outcome built in the source: `names` of the signals of an Await, or of the one step of a Goto."""

    outcome: type[Await | Goto]
    names: tuple[str, ...]
    function: str
    line: int


def mentions(workflow: type[Workflow[Any]], declared: Declaration) -> Iterator[Mention]:
    """The outcomes that the step's body and its handlers build with names that can be read off."""
    for function in _functions(workflow, declared):
        plain = inspect.unwrap(function)
        for call, line in _calls(plain):
            outcome = _value(call.func, plain)
            names = tuple(name for name in _names(call, plain) if isinstance(name, str))
            if (outcome is Await or outcome is Goto) and names:
                yield Mention(outcome=outcome, names=names, function=plain.__name__, line=line)


def _functions(workflow: type[Workflow[Any]], declared: Declaration) -> Iterator[Callable[..., Any]]:
    """The body, and what answers a signal or a timeout: an undo's outcome means nothing."""
    body = inspect.getattr_static(workflow, declared.attribute)
    yield (body.workflow_method or type(body).run) if isinstance(body, Step) else body
    for kind in ("on_signal", "on_timeout"):
        name = declared.handlers.get(kind)
        if name is not None:
            handler = inspect.getattr_static(workflow, name)
            yield handler.function if isinstance(handler, Handler) else handler
        elif declared.handles(kind):
            yield getattr(type(declared.step), METHODS[kind])


def _calls(function: Callable[..., Any]) -> list[tuple[ast.Call, int]]:
    """The calls in the function's own scope, in the order of their lines, with these."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # typed into a shell, built by exec, or not a function
        return []
    found: list[tuple[ast.Call, int]] = []
    waiting: list[ast.AST] = [node for node in tree.body[:1] if isinstance(node, ast.FunctionDef)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            found.append((node, first + node.lineno - 1))
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, _OTHER_SCOPES)]
    return sorted(found, key=lambda call: call[1])


def _names(call: ast.Call, function: Callable[..., Any]) -> Iterator[Any]:
    """The values of the call's names; None for one that can't be read off."""
    for argument in call.args:
        yield None if isinstance(argument, ast.Starred) else _value(argument, function)
    yield from (_value(keyword.value, function) for keyword in call.keywords if keyword.arg == "step")


def _value(node: ast.expr, function: Callable[..., Any]) -> Any:
    """What a literal, a name or a dotted name stands for in that function; None if that is not certain."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _visible(function).get(name)
        case ast.Attribute(value=owner, attr=name):
            holder = _value(owner, function)
            # A class may compute its attributes; a module that does (PEP 562) is asked, because this package is one.
            return getattr(holder, name, None) if isinstance(holder, ModuleType) else None
    return None


def _visible(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Globals, and the enclosing function's variables over them. A local variable hides both, and is not known."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    if code is None:
        return {}
    free = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True) if _is_filled(cell)}
    hidden = dict.fromkeys(code.co_varnames)
    return {**function.__globals__, **free, **hidden}


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
