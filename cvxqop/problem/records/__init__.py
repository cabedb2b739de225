"""Where rows lie, and how each record is clipped."""
