"""An index that is partial where the database can, and whole elsewhere."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


class PartialWherePossible(models.Index):
    """Like `Index(condition=…)`, but MySQL and MariaDB get the index without its condition instead of none."""

    def __init__(self, *fields: str, where: models.Q, name: str) -> None:
        self.where = where
        super().__init__(fields=fields, name=name)

    def create_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor, using: str = "", **kwargs: Any
    ) -> Any:
        """The plain index's SQL, with the condition where the database has partial indexes."""
        if not schema_editor.connection.features.supports_partial_indexes:
            return super().create_sql(model, schema_editor, using=using, **kwargs)
        partial = models.Index(fields=self.fields, name=self.name, condition=self.where)
        return partial.create_sql(model, schema_editor, using=using, **kwargs)

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """For migrations."""
        return f"{type(self).__module__}.{type(self).__qualname__}", tuple(self.fields), self._keywords()

    def _keywords(self) -> dict[str, Any]:
        return {"where": self.where, "name": self.name}
