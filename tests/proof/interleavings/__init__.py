"""Interleavings: threads that proceed one SQL statement at a time, in an order that a seed decides."""
