"""The embedded default: a model grown on the spot learns to work sums out.

`docs/quickstart.md` says why these numbers.
"""

from grupo.core.schedules import Linear, Warmup
from grupo.envs import Part, SingleTurn
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import After, GymVerifier
from grupo.rollouts.evaluate import Solved
from grupo.tasks import ReasoningGym
from grupo.toy import Seedling, worked_solutions


def sums(fewest: int, most: int, *, size: int, seed: int) -> ReasoningGym:
    """Sums of one-digit terms."""
    digits = (("min_digits", 1), ("max_digits", 1))
    terms = (("min_terms", fewest), ("max_terms", most))
    return ReasoningGym("chain_sum", size, seed, (*terms, *digits), "{question}\n")


HELD_OUT = sums(5, 6, size=200, seed=900_000_000)
SEEDLING = Seedling(sums(2, 6, size=50_000, seed=1), HELD_OUT)

RECIPE = Recipe(
    policy=CausalLM(str(SEEDLING.home), limit=64, budget=2048),
    env=SingleTurn((Part("correct", GymVerifier(After(worked_solutions.MARK.strip()))),)),
    tasks=sums(5, 6, size=50_000, seed=500_000_000),
    held_out=HELD_OUT,
    method=grpo(group=16, kl=0.0),
    steps=20,
    prompts=32,
    lr=Warmup(0.1, Linear(2e-4, 2e-5)),
    evaluation=Evaluation(attempts=8, solved=Solved("correct")),
)
