"""What a spawned worker process runs. Nothing of Django may be imported before it is set up."""

from __future__ import annotations

import signal


def work(using: str, burst: bool) -> None:  # noqa: FBT001 - positional arguments are what a spawned process gets
    """Set Django up and run one worker until it is told to end."""
    import django

    django.setup()

    from workflow_engine.worker.loop import Worker

    worker = Worker(using)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    worker.run(burst=burst)
