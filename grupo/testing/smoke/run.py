"""A trial: a method trained for some steps, and what became of the truth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component_fields, is_component
from grupo.core.rng import derive_key
from grupo.core.signal_names import is_step_value, split_name, temperature_of
from grupo.method import Method
from grupo.models.aux_models import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import SuccessCriterion, evaluate
from grupo.rollouts.samplers import GroupSampler
from grupo.testing import property_helpers
from grupo.testing.smoke.echo_env import (
    MAX_NEW_TOKENS,
    EchoEnv,
    EchoTasks,
    prompt_with_answer,
    prompt_without_digit,
)
from grupo.testing.smoke.tiny_model import STUDENT_STEPS, TEACHER_STEPS, trained_model
from grupo.training.learner import Learner

STEPS, PROMPTS_PER_STEP, GROUP_SIZE, LEARNING_RATE = 40, 8, 8, 3e-3
UPDATE_PLAN = Updates(minibatches=2)  # for all: ratios leave 1, and nobody learns more often
EVAL_ATTEMPTS = 16  # at each task, before and after
TEACHERS = ("teacher", "prm")
PROMPT_VIEWS = {
    "masked": prompt_without_digit,
    "old": None,
}  # "old" has the policy's own prompt; all others are hinted


@dataclass(frozen=True)
class SmokeResult:
    """The share of sampled rollouts that say the truth, before training and after it."""

    accuracy_before: float
    accuracy_after: float

    @property
    def gain(self) -> float:
        """By how much it rose."""
        return self.accuracy_after - self.accuracy_before


def train_on_echo(
    method: Method, *, seed: int = 0, flipped: bool = False, max_steps: int = STEPS
) -> SmokeResult:
    """Train the method on Echo; `flipped`: with its signal turned round.

    The sign of its advantage is flipped; where the loss does not read the advantage, or learns from
    somebody who knows the answer, the world and all who know it hold another digit for right.
    """
    shift = int(flipped and not _gradient_follows_advantage(method))
    if flipped and not shift:
        method = method.replace(advantage=chain(method.advantage, negate))
    learner = Learner(echo_recipe(method, seed=seed, shift=shift, max_steps=max_steps))
    before = _accuracy(learner)
    for _ in range(max_steps):
        learner.step()
    return SmokeResult(before, _accuracy(learner))


def echo_recipe(method: Method, *, seed: int = 0, shift: int = 0, max_steps: int = STEPS) -> Recipe:
    """A run of the method on Echo, with everybody and everything that it reads.

    Its groups are of one size and its updates as many as everybody's, whatever its own.
    """
    names = tuple(sorted(method.required_reward_terms))
    marks = tuple(
        sorted(n.removeprefix("mark/") for n in method.required_signals if is_step_value(n))
    )
    whose = {split_name(need)[1] for need in method.required_signals} - {"", "ref", "sampler"}
    return Recipe(
        policy=CausalLM(trained_model(STUDENT_STEPS), max_new_tokens=MAX_NEW_TOKENS),
        env=EchoEnv(shift, names, marks),
        tasks=EchoTasks(shift),
        eval_tasks=0,
        method=method.replace(sampler=with_group_size(method.sampler), updates=UPDATE_PLAN),
        aux_models=tuple(
            _aux_model(who, shift) for who in sorted(whose) if not temperature_of(who)
        ),
        max_steps=max_steps,
        prompts_per_step=PROMPTS_PER_STEP,
        learning_rate=LEARNING_RATE,
        aux_head_learning_rate=3e-2,
        seed=seed,
    )


def negate(x: Tensor, batch: Batch) -> Tensor:
    """The credit so far with its sign flipped."""
    return -x


def with_group_size(sampler: Any) -> Any:
    """The same sampler with groups of one size, however deep it says theirs."""
    if isinstance(sampler, GroupSampler):
        return replace(sampler, group_size=GROUP_SIZE)
    if not is_component(sampler):
        return sampler
    inside = {
        name: with_group_size(x) for name, x in component_fields(sampler).items() if is_component(x)
    }
    return replace(sampler, **inside)


def _accuracy(learner: Learner) -> float:
    score = evaluate(
        learner.policy,
        learner.recipe.env,
        learner.tasks,
        attempts=EVAL_ATTEMPTS,
        success=SuccessCriterion("truth"),
        key=derive_key(learner.recipe.seed, "truth"),
    )
    return score.sampled.value


def _aux_model(name: str, shift: int) -> AuxModel:
    if name in TEACHERS:
        return AuxModel(
            name, CausalLM(trained_model(TEACHER_STEPS, shift), max_new_tokens=MAX_NEW_TOKENS)
        )
    return AuxModel(name, "policy", PROMPT_VIEWS.get(name, prompt_with_answer))


def _gradient_follows_advantage(method: Method) -> bool:
    """Does flipping the advantage flip the gradient, and does nobody else know the answer?"""
    if _needs_answer(method.required_signals) or "sampled" in method.required_signals:
        return False
    batch = property_helpers.batch_for(method)
    flipped = method.replace(advantage=chain(method.advantage, negate))
    one, other = (property_helpers.loss_and_gradient(m, batch)[1] for m in (method, flipped))
    return bool(torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), 0) < 0)


def _needs_answer(required_signals: Sequence[str] | frozenset[str]) -> bool:
    return any(split_name(need)[1] not in ("", "ref", "sampler") for need in required_signals)
