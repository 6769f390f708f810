"""Settings and memory of published models of 0.5 to 8 billion parameters, computed."""
