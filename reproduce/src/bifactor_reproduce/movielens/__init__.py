"""1-bit completion of MovieLens 100k (§6.5 of the paper)."""
