"""From a plan to a release: the charge, the draw, one solve, one release."""
