"""Completion of pictures with missing pixels, as pictures rather than matrices."""
