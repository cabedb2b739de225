"""Any convex rest, through cone programs of D variables."""
