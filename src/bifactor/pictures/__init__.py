"""Pictures with hidden pixels: what is done with them as pictures, not as matrices."""
