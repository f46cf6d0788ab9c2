"""Pages to look at: one skeleton, one palette."""
