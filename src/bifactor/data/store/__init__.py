"""Observations on disk in blocks, for data larger than memory."""
