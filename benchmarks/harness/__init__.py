"""Common code of the benchmarks: rows, clocks, tables, data, and the comparison of two commits."""
