"""Photographs completed from some of their pixels (§6.4 of the paper)."""
