"""The catalogue: all methods and papers of the library, and how methods differ from the default."""
