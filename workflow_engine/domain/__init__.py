"""What a workflow is and what happens to it, decided in pure Python: no Django, no clock, no I/O."""
