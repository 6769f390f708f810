"""Turn strategies: how the policy answers one observation, which is a turn of a rollout."""

from grupo.core.interfaces import single_response
from grupo.rollouts.turns.adaptive_graph import AdaptiveGraph
from grupo.rollouts.turns.advantage_revision import AdvantageRevision
from grupo.rollouts.turns.analogies import Analogies
from grupo.rollouts.turns.best_of import BestOf, Vote
from grupo.rollouts.turns.chunked_thinking import ChunkedThinking
from grupo.rollouts.turns.forced_start import ForcedStart
from grupo.rollouts.turns.fresh_context import FreshContext
from grupo.rollouts.turns.group_think import GroupThink
from grupo.rollouts.turns.lent_thought import LentThought
from grupo.rollouts.turns.prompt_variants import PromptVariants
from grupo.rollouts.turns.recalled_thoughts import RecalledThoughts
from grupo.rollouts.turns.revised import Revised
from grupo.rollouts.turns.shuffled_options import ShuffledOptions
from grupo.rollouts.turns.similar_examples import SimilarExamples
from grupo.rollouts.turns.steered_entropy import SteeredEntropy
from grupo.rollouts.turns.step_beam import StepBeam
from grupo.rollouts.turns.step_tree_search import StepTreeSearch
from grupo.rollouts.turns.thinking_budget import ThinkingBudget
from grupo.rollouts.turns.value_guided import ValueGuided
from grupo.rollouts.turns.with_program import WithProgram

__all__ = [
    "AdaptiveGraph",
    "AdvantageRevision",
    "Analogies",
    "BestOf",
    "ChunkedThinking",
    "ForcedStart",
    "FreshContext",
    "GroupThink",
    "LentThought",
    "PromptVariants",
    "RecalledThoughts",
    "Revised",
    "ShuffledOptions",
    "SimilarExamples",
    "SteeredEntropy",
    "StepBeam",
    "StepTreeSearch",
    "ThinkingBudget",
    "ValueGuided",
    "Vote",
    "WithProgram",
    "single_response",
]
