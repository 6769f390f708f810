"""Errors, files, texts and statistics: all packages use them; they know nothing of policies."""
