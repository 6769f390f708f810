"""The files of a run: journals and checkpoints that survive crashes and power loss."""
