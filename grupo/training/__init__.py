"""The training loop: collect groups, collate them, compute advantages, accumulate gradients, step."""
