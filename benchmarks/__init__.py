"""Speed, size and accuracy, measured side by side in one run: `make bench`, or `python -m benchmarks NAME …`.

Every module of `speed`, `accuracy`, `scale` and `fuzz`, and `bits`, is a benchmark; `rivals` has other methods and
libraries, and `harness` the common code. A benchmark has `run`, which gives flat rows: three nouns (`objective`,
`data`, `solver`), then raw numbers. `CASES`, if it has any, can be timed on two commits; `summary`, if it has one,
returns the lines of a second table.
"""
