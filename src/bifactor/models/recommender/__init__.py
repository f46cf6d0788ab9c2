"""Recommendations from clicks, plays and purchases."""
