"""Turn strategies: how the policy answers one observation, which is a turn of a rollout."""

from grupo.rollouts.turns.chunked_thinking import ChunkedThinking
from grupo.rollouts.turns.forced_start import ForcedStart
from grupo.rollouts.turns.step_beam import StepBeam
from grupo.rollouts.turns.thinking_budget import ThinkingBudget
from grupo.rollouts.turns.value_guided import ValueGuided

__all__ = ["ChunkedThinking", "ForcedStart", "StepBeam", "ThinkingBudget", "ValueGuided"]
