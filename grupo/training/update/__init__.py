"""The update of a step: lay out groups as a batch, compute gradients, update, and measure."""
