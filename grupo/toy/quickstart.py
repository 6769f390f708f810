"""The default recipe: GRPO teaches a toy model to work out sums step by step.

`docs/quickstart_offline.md` explains the numbers.
"""

from grupo.core.schedules import Linear, Warmup
from grupo.core.validation import check_context_room
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import AfterMarker, ReasoningGymVerifier
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import ReasoningGym
from grupo.toy import ToyArithmeticLM, ensure_trained, worked_solutions
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision
from grupo.training.callbacks import Callback, NullCallback


def sum_tasks(min_terms: int, max_terms: int, *, size: int, seed: int) -> ReasoningGym:
    """Tasks to add and subtract one-digit numbers."""
    digits = (("min_digits", 1), ("max_digits", 1))
    terms = (("min_terms", min_terms), ("max_terms", max_terms))
    return ReasoningGym("chain_sum", size, seed, (*terms, *digits), "{question}\n")


EVAL_TASKS = sum_tasks(5, 6, size=200, seed=900_000_000)
TOY_MODEL = ToyArithmeticLM(sum_tasks(2, 6, size=50_000, seed=1), EVAL_TASKS)
TOY_VISION_MODEL = ToyVisionLM()


def needs_toy_model(recipe: Recipe) -> bool:
    """Whether the model of a recipe is a toy model, which is not trained yet.

    Raises:
        ConfigError: It is, and the recipe's answers would leave no room for a prompt.
    """
    policy = recipe.policy
    needed = [x for x in (TOY_MODEL, TOY_VISION_MODEL) if policy.model == str(x.model_dir)]
    if not needed or needed[0].model_dir.is_dir():
        return False
    if isinstance(policy, CausalLM):
        check_context_room(policy.max_new_tokens, needed[0].context_length)
    return True


def ensure_toy_model(recipe: Recipe, callback: Callback = NullCallback()) -> None:
    """Train the toy model that a recipe needs, if it does not exist."""
    if needs_toy_model(recipe):
        if recipe.policy.model == str(TOY_VISION_MODEL.model_dir):
            ensure_trained_vision(TOY_VISION_MODEL, callback)
        else:
            ensure_trained(TOY_MODEL, callback)


RECIPE = Recipe(
    policy=CausalLM(str(TOY_MODEL.model_dir), max_new_tokens=64, tokens_per_microbatch=2048),
    env=SingleTurn(
        (
            RewardTerm(
                "correct", ReasoningGymVerifier(AfterMarker(worked_solutions.ANSWER_PREFIX.strip()))
            ),
        )
    ),
    tasks=sum_tasks(5, 6, size=50_000, seed=500_000_000),
    eval_tasks=EVAL_TASKS,
    method=grpo(group_size=16, kl_coef=0.0),
    max_steps=20,
    prompts_per_step=32,
    learning_rate=Warmup(0.1, Linear(2e-4, 2e-5)),
    evaluation=Evaluation(attempts=8, success=SuccessCriterion("correct")),
)
