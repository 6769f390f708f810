"""Bodies of the family of Llama, worked out by C and matrix products instead of modules."""
