"""What the benchmarks share: rows, clocks, tables, data, other libraries, and the comparison of two commits."""
