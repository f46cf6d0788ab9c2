"""Variational Bayes: the posterior of the factors, in memory and in blocks."""
