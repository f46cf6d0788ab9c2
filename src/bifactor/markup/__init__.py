"""HTML and SVG as text: what report pages and notebooks are drawn with."""
