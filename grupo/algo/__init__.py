"""Mathematics of the methods: advantages, losses, aggregation, filters and update plans.

The functions are pure and read one batch. Shape letters: P groups, R rollouts, N rows (sequences),
T actions per row (tokens or denoising steps).
"""
