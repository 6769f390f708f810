"""The embedded default: a model grown on the spot learns to work sums out.

`docs/quickstart.md` says why these numbers.
"""

from grupo.envs import Part, SingleTurn
from grupo.evaluate import Solved
from grupo.grow import Seedling, solutions
from grupo.losses import Clip
from grupo.method import Method
from grupo.policies.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import After, GymVerifier
from grupo.sampling import Independent
from grupo.schedules import Linear, Warmup
from grupo.tasks import ReasoningGym
from grupo.weights import token_mean

SUMS = (("min_terms", 5), ("max_terms", 6), ("min_digits", 1), ("max_digits", 1))
HELD_OUT = ReasoningGym("chain_sum", size=200, seed=900_000_000, settings=SUMS)
SEEDLING = Seedling(ReasoningGym("chain_sum", size=50_000, seed=1, settings=SUMS), HELD_OUT)

RECIPE = Recipe(
    policy=CausalLM(str(SEEDLING.home), limit=64),
    env=SingleTurn((Part("correct", GymVerifier(After(solutions.MARK.strip()))),)),
    tasks=ReasoningGym("chain_sum", size=50_000, seed=500_000_000, settings=SUMS),
    held_out=HELD_OUT,
    method=Method(sample=Independent(16), loss=Clip(0.2, 0.2), weigh=token_mean),
    steps=20,
    prompts=32,
    lr=Warmup(0.1, Linear(2e-4, 2e-5)),
    evaluation=Evaluation(attempts=8, solved=Solved("correct")),
)
