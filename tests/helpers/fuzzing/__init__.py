"""Inputs for the fuzzers of each surface: files, configurations and replies of servers."""
