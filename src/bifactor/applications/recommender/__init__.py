"""Recommendations from clicks, plays and purchases, or from ratings."""
