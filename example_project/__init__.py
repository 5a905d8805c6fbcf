"""A small shop that shows what the workflow engine is for: run it with `python manage.py demo`."""
