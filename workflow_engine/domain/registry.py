"""Which workflow classes this process knows. Rows are matched with code by look-up here and in no other way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workflow_engine.exceptions import DefinitionError, UnknownWorkflowError

if TYPE_CHECKING:
    from workflow_engine.domain.workflows import Workflow


class Registry:
    """Workflow classes by name and version; several versions of a name live side by side."""

    def __init__(self) -> None:
        self._classes: dict[tuple[str, int], type[Workflow[Any]]] = {}

    def register(self, workflow: type[Workflow[Any]]) -> None:
        """Add a class; defined again, as by a reload, it replaces itself. Another one raises DefinitionError."""
        known = self.get(workflow.name, workflow.version)
        if known is not None and _path(known) != _path(workflow):
            raise DefinitionError(
                workflow.__name__,
                f"{workflow.name!r} version {workflow.version} is already defined by {_path(known)}",
                "Give it another name, or a higher version if it is the newer one.",
            )
        self._classes[workflow.name, workflow.version] = workflow

    def get(self, name: str, version: int) -> type[Workflow[Any]] | None:
        return self._classes.get((name, version))

    def exact(self, name: str, version: int) -> type[Workflow[Any]]:
        """That version. Raises UnknownWorkflowError."""
        found = self.get(name, version)
        if found is None:
            versions = [f"{name} version {known}" for known in self.versions(name)]
            raise UnknownWorkflowError(name, versions or self.names(), version)
        return found

    def newest(self, name: str) -> type[Workflow[Any]]:
        """The highest version. Raises UnknownWorkflowError."""
        versions = self.versions(name)
        if not versions:
            raise UnknownWorkflowError(name, self.names())
        return self._classes[name, versions[-1]]

    def versions(self, name: str) -> tuple[int, ...]:
        """In ascending order; empty when there is no such workflow."""
        return tuple(sorted(version for known, version in self._classes if known == name))

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({name for name, _ in self._classes}))

    def for_row(self, name: str, version: int, remaining: Sequence[str]) -> type[Workflow[Any]] | None:
        """The class that can run a stored instance: its exact version, else the newest with every remaining step."""
        exact = self.get(name, version)
        if exact is not None:
            return exact
        for other in reversed(self.versions(name)):
            workflow = self._classes[name, other]
            if all(key in workflow.steps for key in remaining):
                return workflow
        return None

    def __iter__(self) -> Iterator[type[Workflow[Any]]]:
        """Sorted by name and version."""
        return iter([self._classes[key] for key in sorted(self._classes)])

    def __len__(self) -> int:
        return len(self._classes)

    @contextmanager
    def isolated(self) -> Iterator[Registry]:
        """For tests: what is registered inside is forgotten afterwards."""
        before = dict(self._classes)
        try:
            yield self
        finally:
            self._classes = before


def _path(workflow: type) -> str:
    return f"{workflow.__module__}.{workflow.__qualname__}"


registry = Registry()
