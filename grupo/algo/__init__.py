"""The mathematics: advantages, losses, aggregation, filters and update plans as pure functions of a batch."""
