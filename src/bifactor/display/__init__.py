"""HTML and SVG as text, for report pages and notebooks."""
