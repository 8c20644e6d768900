"""The benchmarks: ratios in one run on one machine, never a timed test. `make bench` runs them."""
