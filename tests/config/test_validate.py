"""Validation of recipes, whether they come from a command line or from Python."""

import math
from dataclasses import replace

import numpy as np
import pytest

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy, chain, identity
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import JSD, KL, Clip, Entropy, Loss
from grupo.algo.minibatches import Updates
from grupo.algo.optimizers import Adam
from grupo.catalogue.entries import methods
from grupo.config.validate import check_recipe
from grupo.core.component import component
from grupo.core.numbers import PositiveFraction
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.requires import Requires
from grupo.core.schedules import Cosine, Linear, Warmup
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.base import AuxModel
from grupo.recipe import Evaluation
from grupo.rewards import ExactMatch
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import (
    FirstTurnTree,
    GroupSampler,
    ResampleUntilInformative,
)
from grupo.testing.smoke import run as smoke_run
from grupo.toy.quickstart import RECIPE, TOY_MODEL
from grupo.util.errors import ConfigError


@component
class Confident(Loss):
    """A loss that reads a signal which no language model has."""

    requires = Requires(recomputed_signals=("entropie",))


def grouped_by_term(name):
    return GroupedBy(Center(), ByRewardTerm(name))


@component
class Shifted:
    """An advantage estimator of another package, whose whole numbers may be negative."""

    by: int = -1

    def __call__(self, x, batch):
        return x - self.by


def with_method(**changes):
    return RECIPE.replace(method=Method(**changes))


def with_policy(**changes):
    return RECIPE.replace(policy=replace(RECIPE.policy, **changes))


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_recipe_of_every_method_is_valid(entry):
    recipe = smoke_run.echo_recipe(entry.method).replace(prompts_per_step=48)
    check_recipe(recipe.replace(method=entry.method))


def test_a_plan_of_as_many_minibatches_as_groups_is_valid():
    check_recipe(with_method(updates=Updates(3, 32)))  # 32 prompts per step


def test_recipe_of_the_toy_model_is_valid(tmp_path):
    check_recipe(TOY_MODEL.recipe(tmp_path))


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE.replace(max_grad_norm=math.inf),
        RECIPE.replace(learning_rate=0),
        RECIPE.replace(learning_rate=np.float64(1e-5)),
        RECIPE.replace(eval_tasks=0),
        with_method(loss=Clip(math.inf, Linear(0.2, 0.3)) + (-0.01) * Entropy()),
        with_method(loss=Warmup(0.5, Cosine(0.1)) * KL()),
        with_method(sampler=GroupSampler(1), advantage=identity),
        with_method(advantage=chain(Center(), Shifted())),
        with_method(
            sampler=ResampleUntilInformative(FirstTurnTree(2, 2), 2),
            curriculum=DynamicSampling(ShuffledTasks(), 3),
        ),
    ],
)
def test_valid_recipes_pass(recipe):
    check_recipe(recipe)


@pytest.mark.parametrize(
    ("make_recipe", "message"),
    [
        (lambda: RECIPE.replace(max_steps=0), "max_steps: 0. Allowed: 1 to 1000000000."),
        (
            lambda: RECIPE.replace(max_steps="5"),
            "Recipe.max_steps: '5'. Allowed: a whole number.",
        ),
        (
            lambda: RECIPE.replace(max_steps=True),
            "Recipe.max_steps: True. Allowed: a whole number.",
        ),
        (
            lambda: RECIPE.replace(prompts_per_step=2.0),
            "Recipe.prompts_per_step: 2.0. Allowed: a whole number.",
        ),
        (lambda: RECIPE.replace(save_every=0), "save_every: 0. Allowed: 1 or more; rollout steps."),
        (
            lambda: RECIPE.replace(max_grad_norm=math.nan),
            "max_grad_norm: nan. Allowed: above 0; inf clips nothing.",
        ),
        (
            lambda: RECIPE.replace(max_grad_norm=Linear(1, 2)),
            "Recipe.max_grad_norm: Linear(start=1, end=2). Allowed",
        ),
        (
            lambda: RECIPE.replace(learning_rate=math.nan),
            "learning_rate: nan. Allowed: 0 or more, finite.",
        ),
        (
            lambda: RECIPE.replace(learning_rate=math.inf),
            "learning_rate: inf. Allowed: 0 or more, finite.",
        ),
        (
            lambda: RECIPE.replace(learning_rate="fast"),
            "Recipe.learning_rate: 'fast'. Allowed: a number or Cosine(…)",
        ),
        (
            lambda: RECIPE.replace(learning_rate=Linear(1.0, -0.1)),
            "at step 19. Allowed: 0 or more, finite.",
        ),
        (
            lambda: RECIPE.replace(learning_rate=Warmup(1.5, 1e-5)),
            "Warmup.fraction: 1.5. Allowed: above 0, at most 1.",
        ),
        (
            lambda: RECIPE.replace(optimizer=Adam(beta1=1.0)),
            "Adam.beta1: 1.0. Allowed: 0 or more, bel",
        ),
        (
            lambda: RECIPE.replace(evaluation="often"),
            "Recipe.evaluation: 'often'. Allowed: Evaluation(…).",
        ),
        (
            lambda: RECIPE.replace(evaluation=Evaluation(0)),
            "evaluation.attempts: 0. Allowed: 1 or more with this method",
        ),
        (
            lambda: RECIPE.replace(evaluation=Evaluation(every=-1)),
            "Evaluation.every: -1. Allowed: 0 or more; rollout steps.",
        ),
        (
            lambda: RECIPE.replace(evaluation=Evaluation(success=SuccessCriterion("corect"))),
            "evaluation.success.reward_term: 'corect'. Did you mean 'correct'?"
            " Allowed: correct, total.",
        ),
        (lambda: with_policy(max_new_tokens=0), "CausalLM.max_new_tokens: 0. Allowed: 1 or more."),
        (
            lambda: with_policy(tokens_per_microbatch=0),
            "CausalLM.tokens_per_microbatch: 0. Allowed: 1 or more.",
        ),
        (
            lambda: with_policy(stop_strings="####"),
            "CausalLM.stop_strings: '####'. Allowed: a tuple (…,) of which",
        ),
        (
            lambda: with_policy(stop_strings=("a", "")),
            "CausalLM.stop_strings: ('a', ''). Allowed: not empty.",
        ),
        (
            lambda: with_policy(dtype="float8"),
            "CausalLM.dtype: 'float8'. Allowed: float32 or bfloat16 or float64.",
        ),
        (
            lambda: with_policy(device="tpu"),
            "device: 'tpu' is not available. Did you mean 'cpu'? Allowed: auto, cpu",
        ),
        (
            lambda: with_method(sampler=GroupSampler(1)),
            "method.sampler: a group of 1 rollout has nothing",
        ),
        (
            lambda: with_method(sampler=GroupSampler(0)),
            "GroupSampler.group_size: 0. Allowed: 1 or more.",
        ),
        (
            lambda: with_method(sampler=ResampleUntilInformative(FirstTurnTree(0, 2), 2)),
            "FirstTurnTree.first_turns: 0. Allowed",
        ),
        (
            lambda: with_method(curriculum=DynamicSampling(ShuffledTasks(), 0)),
            "DynamicSampling.max_resample_rounds: 0. Allow",
        ),
        (
            lambda: with_method(updates=Updates(2, 33)),
            "method.updates.minibatches: 33. Allowed: at most 32, the groups of a step"
            " (prompts_per_step), because no group is split. Set prompts_per_step to 33 or more, or"
            " method.updates to Updates(epochs=2, minibatches=32).",
        ),
        (lambda: with_method(updates=Updates(1, 0)), "Updates.minibatches: 0. Allowed: 1 or more."),
        (
            lambda: with_method(aggregation=ConstantLength(-4)),
            "ConstantLength.max_length: -4. Allowed: 1 or more.",
        ),
        (lambda: with_method(loss=Clip(-0.2)), "Clip.clip_low: -0.2. Allowed: 0 or more."),
        (
            lambda: with_method(loss=Clip() + Clip(clip_high=-1.0)),
            "Clip.clip_high: -1.0. Allowed: 0 or more.",
        ),
        (
            lambda: with_method(loss=KL(other_policy="teacher")),
            "it reads 'logp@teacher', and the run has no 'teacher'",
        ),
        (
            lambda: with_method(loss=JSD("teacher")),
            "it reads 'jsd@teacher', and the run has no 'teacher'",
        ),
        (
            lambda: with_method(advantage=grouped_by_term("style")),
            "it reads 'style', which is no reward of the env",
        ),
        (
            lambda: with_method(reference=ReferenceUpdate(1.5)),
            "ReferenceUpdate.rate: 1.5. Allowed: 0 to 1.",
        ),
        (
            lambda: with_method(reference=ReferenceUpdate(every=0)),
            "ReferenceUpdate.every: 0. Allowed: 1 or more; rollout steps.",
        ),
        (
            lambda: RECIPE.replace(aux_models=(AuxModel("ref"),)),
            "aux_models[0].name: 'ref'. Allowed: a name of its own.",
        ),
        (
            lambda: RECIPE.replace(aux_models=(AuxModel("a b"),)),
            "aux_models[0].name: 'a b'. Allowed: a name of its own.",
        ),
        (
            lambda: RECIPE.replace(aux_models=(AuxModel("twin"), AuxModel("twin"))),
            "aux_models[1].name: 'twin'. Allowed: a name of its own.",
        ),
        (
            lambda: RECIPE.replace(aux_models=(AuxModel("t", "poliy"),)),
            "aux_models[0].model: 'poliy' is no model. Did you",
        ),
        (
            lambda: RECIPE.replace(aux_head_learning_rate=-1.0),
            "aux_head_learning_rate: -1.0. Allowed: 0 or more, finite.",
        ),
        (
            lambda: with_method(loss=Confident()),
            "no signal 'entropie'. Did you mean 'entropy'? Allowed: collision, conc",
        ),
    ],
)
def test_invalid_recipes_are_rejected_with_the_place(make_recipe, message):
    with pytest.raises(ConfigError) as caught:
        check_recipe(make_recipe())
    assert message in str(caught.value)


def test_success_may_be_decided_by_a_term_of_a_term():
    env = SingleTurn((RewardTerm("math", ExactMatch()),))
    check_recipe(
        RECIPE.replace(env=env, evaluation=Evaluation(success=SuccessCriterion("math/acc")))
    )


def test_a_number_without_a_range_may_be_zero():
    check_recipe(with_method(advantage=chain(Center(), Shifted(by=0))))


@component
class Halved(Loss):
    """A loss with a coefficient that must be a fraction above 0."""

    coef: PositiveFraction

    def __call__(self, pi, batch):
        return self.coef * pi.logp


def test_a_schedule_is_checked_at_the_steps_of_the_run():
    check_recipe(with_method(loss=Halved(Linear(1.0, 0.0))))  # 0 is not reached
    with pytest.raises(ConfigError, match=r"method, at step \d+: Halved.coef: 1\.\d+. Allowed"):
        check_recipe(with_method(loss=Halved(Warmup(0.25, Linear(1.4, 0.4)))))
