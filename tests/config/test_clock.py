"""A recipe's description names what the clock can decide."""

from grupo.algo.losses import KL, Clip
from grupo.config.clock import describe_clock
from grupo.core.controllers import LastValue
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import EarlyStopping, Recipe
from grupo.rewards import ExactMatch
from grupo.tasks import ReasoningGym

RECIPE = Recipe(
    CausalLM("model"),
    SingleTurn((RewardTerm("right", ExactMatch()),), time_limit=2.5),
    ReasoningGym("chain_sum", 50),
)
LIMIT = "what takes about that long may fail in one run and not in another"


def test_time_limits_of_components_are_named():
    assert describe_clock(RECIPE) == [f"clock: SingleTurn.time_limit=2.5: {LIMIT}"]


def test_a_limit_on_training_time_is_named():
    recipe = RECIPE.replace(early_stopping=EarlyStopping(max_seconds=60))
    assert describe_clock(recipe)[1:] == [
        "clock: early_stopping.max_seconds=60: a resumed run repeats it, another run does not"
    ]


def test_controllers_of_times_are_named_and_others_are_not():
    for metric, lines in (("policy/entropy", 1), ("throughput/tokens_per_s", 2)):
        loss = Clip() + LastValue(metric, 1.0) * KL()
        assert len(describe_clock(RECIPE.replace(method=Method(loss=loss)))) == lines
    assert describe_clock(RECIPE.replace(method=Method(loss=loss)))[1] == (
        "clock: controllers read throughput/tokens_per_s, which no run repeats"
    )
