"""One run: the loop, when it stops, what it records and what it returns."""
