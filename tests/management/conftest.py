from __future__ import annotations

from tests.inspection.flows import flows

__all__ = ["flows"]
