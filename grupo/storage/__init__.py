"""What a run leaves on disk, and how it survives whatever happens to the machine."""
