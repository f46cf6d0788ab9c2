"""What must never happen, looked for at random: surprises, damaged files that are believed, lost work."""
