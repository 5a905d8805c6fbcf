"""What a spawned worker process runs. Nothing of Django may be imported before it is set up."""

from __future__ import annotations


def work(using: str, burst: bool, verbosity: int) -> None:  # noqa: FBT001 - positional, as a spawned process gets them
    """Set Django up and be one `workflow_worker`, which says what it does; its parent has run the checks."""
    import django

    django.setup()

    from django.core.management import call_command

    call_command("workflow_worker", database=using, burst=burst, verbosity=verbosity, skip_checks=True)
