"""Affine rank minimisation with noiselets (§6.3 of the paper)."""
