"""The cost of SVDs against that of products (§6.1 of the paper)."""
