"""Algorithms that minimise a smooth function plus the public rest."""
