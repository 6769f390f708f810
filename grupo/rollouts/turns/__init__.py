"""Turn strategies: how the policy answers one observation, which is a turn of a rollout."""

from grupo.rollouts.turns.chunked_thinking import ChunkedThinking
from grupo.rollouts.turns.forced_start import ForcedStart
from grupo.rollouts.turns.thinking_budget import ThinkingBudget

__all__ = ["ChunkedThinking", "ForcedStart", "ThinkingBudget"]
