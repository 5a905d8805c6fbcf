"""Figures that a reader can repeat: each module is a command, which the Makefile and the docs name."""
