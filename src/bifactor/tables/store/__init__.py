"""Observations on disk in blocks, for data that do not fit into memory."""
