"""What follows from what: (state, what happened, now) becomes events and the state after them. No I/O anywhere."""
