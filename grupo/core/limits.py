"""Largest sizes that a configuration may have, each with its reason.

A number beyond its limit is more likely a typing error than a plan.
"""

MAX_STAGES = 1000  # of a pipeline: their references are checked pair by pair
MAX_ROUNDS = 10_000  # of a pipeline: each is a list of stages in memory, and folders on the disk
