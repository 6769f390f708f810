"""What people see of a run: while it goes, when it has ended, and when something is wrong."""
