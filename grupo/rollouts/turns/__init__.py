"""Turn strategies: how the policy takes a turn of a rollout."""

from grupo.rollouts.turns.chunked_thinking import Chunked
from grupo.rollouts.turns.thinking_budget import Budgeted

__all__ = ["Budgeted", "Chunked"]
