"""Common code of the benchmarks: rows, clocks, tables, data, other libraries, and the comparison of two commits."""
