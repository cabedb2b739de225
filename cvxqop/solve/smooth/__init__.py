"""The smooth part: quadratic forms, sums over records, functions."""
