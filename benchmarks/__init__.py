"""Numbers, each with the question it answers: `python -m benchmarks`."""
