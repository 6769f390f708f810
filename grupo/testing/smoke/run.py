"""A smoke run: a method trained for some steps, with its accuracy before and after."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.algo.advantages import chain
from grupo.core.batch import Batch
from grupo.core.signal_names import is_step_value, split_name, temperature_of
from grupo.method import Method
from grupo.models.base import BUILTIN_MODELS, AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe, with_max_minibatches
from grupo.rollouts.evaluate import SuccessCriterion, evaluate
from grupo.testing.property_helpers import batch_for, loss_and_gradient
from grupo.testing.smoke.echo_env import (
    MAX_NEW_TOKENS,
    EchoEnv,
    EchoTasks,
    prompt_with_answer,
    prompt_without_digit,
)
from grupo.testing.smoke.echo_samplers import fit_to_echo
from grupo.testing.smoke.tiny_model import STUDENT_STEPS, TEACHER_STEPS, trained_model
from grupo.training.learner import Learner
from grupo.util.rng import derive_key

STEPS = 40
PROMPTS_PER_STEP = 8
LEARNING_RATE = 3e-3
EVAL_ATTEMPTS = 16  # sampled rollouts per task, before and after
TEACHERS = ("teacher", "prm")  # auxiliary models that are models of their own
REPROMPTS = {"masked": prompt_without_digit, "old": None}  # other names: `prompt_with_answer`


@dataclass(frozen=True)
class SmokeResult:
    """The fraction of sampled rollouts that are correct, before training and after it."""

    accuracy_before: float
    accuracy_after: float

    @property
    def gain(self) -> float:
        """Increase in accuracy."""
        return self.accuracy_after - self.accuracy_before


def train_on_echo(
    method: Method, *, seed: int = 0, flipped: bool = False, max_steps: int = STEPS
) -> SmokeResult:
    """Train a method on Echo.

    Args:
        method: The method to train.
        seed: Seed of the run.
        flipped: Reverse the training signal. In general, the sign of the advantage is flipped. If
            the loss does not follow the advantage, or learns from a model or text that contains the
            answer, another digit becomes the correct one in the environment and in all sources.
        max_steps: Number of training steps.
    """
    shift = int(flipped and not _gradient_follows_advantage(method))
    if flipped and not shift:
        method = method.replace(advantage=chain(method.advantage, negate))
    learner = Learner(echo_recipe(method, seed=seed, shift=shift, max_steps=max_steps))
    accuracy_before = _accuracy(learner)
    for _ in range(max_steps):
        learner.step()
    return SmokeResult(accuracy_before, _accuracy(learner))


def echo_recipe(method: Method, *, seed: int = 0, shift: int = 0, max_steps: int = STEPS) -> Recipe:
    """The recipe of a smoke run, with all models, reward terms and step values the method reads.

    The group size is the same for all methods. Each has its own update plan, with at most one
    minibatch for each of the `PROMPTS_PER_STEP` groups.
    """
    plan = with_max_minibatches(method.updates, PROMPTS_PER_STEP)
    signals = method.requires.all_signals
    step_values = sorted(name.removeprefix("step/") for name in signals if is_step_value(name))
    terms = method.requires.reward_terms - method.provides.reward_terms
    models = {split_name(name)[1] for name in signals} - {"", *BUILTIN_MODELS}
    return Recipe(
        policy=CausalLM(trained_model(STUDENT_STEPS), max_new_tokens=MAX_NEW_TOKENS),
        env=EchoEnv(shift, tuple(sorted(terms)), tuple(step_values)),
        tasks=EchoTasks(shift),
        eval_tasks=0,
        method=method.replace(sampler=fit_to_echo(method.sampler), updates=plan),
        aux_models=tuple(
            _aux_model(name, shift) for name in sorted(models) if not temperature_of(name)
        ),
        max_steps=max_steps,
        prompts_per_step=PROMPTS_PER_STEP,
        learning_rate=LEARNING_RATE,
        aux_head_learning_rate=3e-2,
        seed=seed,
    )


def negate(x: Tensor, batch: Batch) -> Tensor:
    """The advantages so far with their sign flipped."""
    return -x


def _accuracy(learner: Learner) -> float:
    result = evaluate(
        learner.policy,
        learner.recipe.env,
        learner.tasks,
        num_attempts=EVAL_ATTEMPTS,
        success=SuccessCriterion("truth"),
        key=derive_key(learner.recipe.seed, "truth"),
    )
    return result.sampled.value


def _aux_model(name: str, shift: int) -> AuxModel:
    if name in TEACHERS:
        folder = trained_model(TEACHER_STEPS, shift)
        return AuxModel(name, CausalLM(folder, max_new_tokens=MAX_NEW_TOKENS))
    return AuxModel(name, "policy", REPROMPTS.get(name, prompt_with_answer))


def _gradient_follows_advantage(method: Method) -> bool:
    """True if flipping the advantage flips the gradient and no other source has the answer."""
    signals = method.requires.all_signals
    if "sampled" in signals or _reads_other_models(signals):
        return False
    batch = batch_for(method)
    flipped = method.replace(advantage=chain(method.advantage, negate))
    _, gradient = loss_and_gradient(method, batch)
    _, flipped_gradient = loss_and_gradient(flipped, batch)
    cosine = torch.nn.functional.cosine_similarity(
        gradient.flatten(), flipped_gradient.flatten(), 0
    )
    return bool(cosine < 0)


def _reads_other_models(signals: frozenset[str]) -> bool:
    return any(split_name(name)[1] not in ("", *BUILTIN_MODELS) for name in signals)
