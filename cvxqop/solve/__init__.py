"""HOW the perturbed problem is solved. Knows no privacy."""
