"""Servers of a run's own: each on a free port of 127.0.0.1, in a folder that goes with it, to be killed at will.

The machine's own services are left alone. Nothing here is found by its name, only by the process that was started.
"""
