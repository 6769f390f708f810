"""Native execution of Llama-style models: C code and matrix products in place of the modules."""
