"""The update: groups become a batch, the batch gradients; with the metrics of both."""
