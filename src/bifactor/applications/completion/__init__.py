"""Completion of a matrix of numbers or labels from some of its entries."""
