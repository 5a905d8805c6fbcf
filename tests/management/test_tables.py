from __future__ import annotations

from workflow_engine.management.tables import table


def test_columns_stand_under_each_other_whatever_the_script() -> None:
    rows = [("Zoë", "1"), ("Zoe\u0308", "2"), ("日本", "3"), ("longest", "")]
    assert list(table(("name", "n"), rows)) == [
        "name     n",
        "Zoë      1",
        "Zoe\u0308      2",
        "日本     3",
        "longest",
    ]
