"""What one record adds to the objective."""
