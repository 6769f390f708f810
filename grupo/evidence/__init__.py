"""Evidence: claims of papers, exact biases, surveys of models, simulated clusters, suggestions."""
