"""Many rows of tokens in one line, what they share once: how language models read here."""
