"""The processes that train together: exchange of rollouts, sums of gradients, limits of waiting."""
