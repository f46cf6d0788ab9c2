"""Completion of matrices of numbers and labels."""
