"""Claims about hard tasks: sums of ten digits, of which the toy model solves none before RL."""

from collections.abc import Iterator, Mapping

from grupo.core.schedules import Linear, Warmup
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import EarlyStopping, Recipe
from grupo.rollouts.samplers import GroupSampler, HintColumn, Rescue, RescueAttempt
from grupo.rollouts.samplers.merge_rules import replace_all
from grupo.tasks.digit_sums import HINT_PREFIX, DigitSums
from grupo.toy.digit_sums_lm import CheckedWorking, ToyDigitSumsLM
from grupo.training.learner import Learner, TrainStepResult

ENV = SingleTurn((RewardTerm("correct", CheckedWorking()),))
TRAINING_SEED, EVAL_SEED = 1000, 2000
EVAL_RANGES = {"short": (3, 7), "long": (8, 10)}  # fewest and most digits
HINT_FRACTIONS = (0.25, 0.5, 0.75)


def ghpo_sampler(group_size: int) -> Rescue:
    """Groups that are redone with a quarter, a half and three quarters of the solution.

    Args:
        group_size: Rollouts of a group.
    """
    stages = tuple(
        RescueAttempt(HintColumn("solution", HINT_PREFIX, fraction=part), replace_all)
        for part in HINT_FRACTIONS
    )
    return Rescue(GroupSampler(group_size), stages)


def hard_sums_recipe(
    method: Method,
    *,
    seed: int,
    max_tokens: int,
    model: ToyDigitSumsLM = ToyDigitSumsLM(),
    min_terms: int = 10,
    max_terms: int = 10,
    learning_rate: float = 3e-4,
) -> Recipe:
    """Train the toy model on sums of many digits until it has generated `max_tokens` tokens.

    `ensure_trained(model)` must have made the model.

    Args:
        method: The method.
        seed: Seed of the run.
        max_tokens: Tokens of all rollouts, of hints and of further attempts.
        model: The toy model.
        min_terms: Fewest digits of a sum.
        max_terms: Most digits.
        learning_rate: Peak learning rate.
    """
    return Recipe(
        policy=CausalLM(
            str(model.model_dir),
            max_new_tokens=model.max_new_tokens,
            tokens_per_microbatch=8192,
        ),
        env=ENV,
        tasks=DigitSums(min_terms, max_terms, size=2000, seed=TRAINING_SEED),
        eval_tasks=0,
        method=method,
        max_steps=1000,
        prompts_per_step=16,
        learning_rate=Warmup(0.1, Linear(learning_rate, learning_rate / 10)),
        early_stopping=EarlyStopping(max_tokens=max_tokens),
        seed=seed,
    )


def steps_for_tokens(learner: Learner) -> Iterator[TrainStepResult]:
    """Train until the learner has generated the tokens that end its recipe's run."""
    while learner.state.generated_tokens < learner.recipe.early_stopping.max_tokens:
        yield learner.step()


def trained_for_tokens(recipe: Recipe) -> Learner:
    """The learner once it has generated the tokens that end the recipe's run."""
    learner = Learner(recipe)
    for _ in steps_for_tokens(learner):
        pass
    return learner


def accuracy_by_terms(
    learner: Learner,
    seed: int,
    ranges: Mapping[str, tuple[int, int]] = EVAL_RANGES,
    env: SingleTurn = ENV,
) -> dict[str, float]:
    """Accuracy of 4 attempts at 100 held-out sums without hints, for each range.

    Args:
        learner: Its policy generates the attempts.
        seed: Seed of the attempts.
        ranges: Fewest and most digits of a sum, by name.
        env: Scores the attempts by a reward named `correct`.
    """
    return {
        name: mean_terms(
            learner.policy,
            env,
            DigitSums(low, high, size=100, seed=EVAL_SEED).load(),
            attempts=4,
            seed=seed,
        )["correct"]
        for name, (low, high) in ranges.items()
    }
