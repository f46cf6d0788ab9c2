"""1-bit completion of random matrices (§6.5 of the paper)."""
