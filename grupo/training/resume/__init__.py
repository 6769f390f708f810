"""Runs in folders: their state and files, and what resumes, extends, checks or loads them."""
