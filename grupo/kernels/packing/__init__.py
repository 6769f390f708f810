"""Packed rows: rows of tokens in one sequence that stores each shared prefix once."""
