"""A run, or several beside one another, to look at in a browser: in one file, or while they go."""
