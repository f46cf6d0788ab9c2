"""Other methods and libraries that the benchmarks compare with; their packages come with the `bench` extra."""
