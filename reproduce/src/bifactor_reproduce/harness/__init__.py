"""What experiments share: what one is, how cells are timed, kept and run, and what they are turned into."""
