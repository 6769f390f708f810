"""The training loop: collect groups, collate a batch, compute advantages, update the policy."""
