"""The claims: the central claim of each method, tested in a small environment."""
