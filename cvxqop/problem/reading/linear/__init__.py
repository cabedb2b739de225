"""Terms that are linear in the variables: labels of a loss, a part of a square, or a row alone."""
