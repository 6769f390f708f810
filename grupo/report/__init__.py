"""Displays, reports, loggers and diagnostics of training runs."""
