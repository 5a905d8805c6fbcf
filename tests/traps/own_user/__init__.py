"""A project whose user model is its own, with a UUID for a key, and the tests that run in it."""
