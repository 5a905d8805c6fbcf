"""The world outside the shop: a payment provider and a parcel carrier, played by one server in a process of its own.

Nothing in here knows Django or the shop. The two speak HTTP, keep their own books, and behave as such services do:
most of the time well. Start it with `python -m example_project.outside --help` or `manage.py outside`.
"""
