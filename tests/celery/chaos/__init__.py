"""Live chaos: real Celery workers, a tick and a web process on servers of their own, while everything is killed,
stopped, cut off, emptied and shuffled; then the checker.

    python -m tests.celery.chaos --database postgresql --broker redis --seconds 200 --seed 1
"""
