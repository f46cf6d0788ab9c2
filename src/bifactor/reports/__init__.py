"""HTML reports: one skeleton, one palette."""
