"""The data of the demo, and the script that made it."""
