"""Speed, size and accuracy, measured side by side in one run: `make bench`, or `python -m benchmarks NAME …`.

Every module here is a benchmark; `harness` holds what they share. A benchmark has `run`, which gives flat rows: three
nouns (`objective`, `data`, `solver`), then raw numbers. `CASES`, where it has any, can be timed on two commits;
`summary`, where it has one, forms the lines of a second table.
"""
