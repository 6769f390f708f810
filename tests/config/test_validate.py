"""Validation of recipes, whether they come from a command line or from Python."""

import math
from dataclasses import replace

import numpy as np
import pytest

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy, chain, identity
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import JSD, KL, Clip, Entropy, Loss, Reinforce
from grupo.algo.minibatches import Updates
from grupo.algo.optimizer import Adam
from grupo.catalogue import methods
from grupo.config.validate import MAX_TASKS_CHECKED, check_columns, check_recipe, check_tasks
from grupo.config.validate_signals import check_signal_models
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.schedules import Cosine, Linear, Warmup
from grupo.core.types import Task
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
    WithExpertSolution,
    WithGreedyBaseline,
)
from grupo.testing.smoke import run as smoke_run
from grupo.toy.quickstart import RECIPE, TOY_MODEL


@component
class Confident(Loss):
    """A loss that reads a signal which no language model has."""

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropie"})


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
    check_recipe(smoke_run.echo_recipe(entry.method).replace(method=entry.method))


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
    ("recipe", "message"),
    [
        (RECIPE.replace(max_steps=0), "max_steps: 0. Allowed: 1 or more."),
        (RECIPE.replace(max_steps="5"), "max_steps: '5' does not fit. Allowed: a whole number."),
        (RECIPE.replace(max_steps=True), "max_steps: True does not fit. Allowed: a whole number."),
        (
            RECIPE.replace(prompts_per_step=2.0),
            "prompts_per_step: 2.0 does not fit. Allowed: a whole number.",
        ),
        (RECIPE.replace(save_every=0), "save_every: 0. Allowed: 1 or more."),
        (
            RECIPE.replace(max_grad_norm=math.nan),
            "max_grad_norm: nan. Allowed: above 0; inf clips nothing.",
        ),
        (
            RECIPE.replace(max_grad_norm=Linear(1, 2)),
            "max_grad_norm: Linear(start=1, end=2) does not fit.",
        ),
        (RECIPE.replace(learning_rate=math.nan), "learning_rate: nan. Allowed: 0 or more, finite."),
        (RECIPE.replace(learning_rate=math.inf), "learning_rate: inf. Allowed: 0 or more, finite."),
        (
            RECIPE.replace(learning_rate="fast"),
            "learning_rate: 'fast' does not fit. Allowed: a number or Cosine(…)",
        ),
        (
            RECIPE.replace(learning_rate=Linear(1.0, -0.1)),
            "at step 19. Allowed: 0 or more, finite.",
        ),
        (
            RECIPE.replace(learning_rate=Warmup(1.5, 1e-5)),
            "learning_rate.fraction: 1.5. Allowed: above 0, at most 1.",
        ),
        (
            RECIPE.replace(optimizer=Adam(beta1=1.0)),
            "optimizer.beta1: 1.0. Allowed: 0 or more, bel",
        ),
        (RECIPE.replace(optimizer="adam"), "optimizer: 'adam' does not fit. Allowed: Adam(…)."),
        (RECIPE.replace(evaluation=Evaluation(0)), "evaluation.attempts: 0. Allowed: 1 or more."),
        (
            RECIPE.replace(evaluation=Evaluation(every=-1)),
            "evaluation.every: -1. Allowed: 0 or more.",
        ),
        (
            RECIPE.replace(evaluation=Evaluation(success=SuccessCriterion("corect"))),
            "evaluation.success.reward_term: 'corect'. Did you mean 'correct'? Allowed: correct.",
        ),
        (with_policy(max_new_tokens=0), "policy.max_new_tokens: 0. Allowed: 1 or more."),
        (
            with_policy(tokens_per_microbatch=0),
            "policy.tokens_per_microbatch: 0. Allowed: 1 or more.",
        ),
        (
            with_policy(stop_strings="####"),
            "policy.stop_strings: '####' does not fit. Allowed: a tuple (…,) of which",
        ),
        (
            with_policy(stop_strings=("a", "")),
            "policy.stop_strings: ('a', ''). Allowed: a tuple of strings, none of them empty.",
        ),
        (with_policy(dtype="float8"), "policy.dtype: 'float8'. Allowed: float32 or bfloat16."),
        (
            with_policy(device="tpu"),
            "device: 'tpu' is not available. Did you mean 'cpu'? Allowed: auto, cpu",
        ),
        (with_method(sampler=GroupSampler(1)), "method.sampler: a group of 1 rollout has nothing"),
        (with_method(sampler=GroupSampler(0)), "method.sampler.group_size: 0. Allowed: 1 or more."),
        (
            with_method(sampler=ResampleUntilInformative(FirstTurnTree(0, 2), 2)),
            "method.sampler.inner.first_turns: 0. Allowed",
        ),
        (
            with_method(curriculum=DynamicSampling(ShuffledTasks(), 0)),
            "method.curriculum.max_resample_rounds: 0. Allow",
        ),
        (with_method(updates=Updates(1, 0)), "method.updates.minibatches: 0. Allowed: 1 or more."),
        (
            with_method(aggregation=ConstantLength(-4)),
            "method.aggregation.max_length: -4. Allowed: 1 or more.",
        ),
        (with_method(loss=Clip(-0.2)), "method.loss.clip_low: -0.2. Allowed: 0 or more."),
        (
            with_method(loss=Clip() + Clip(clip_high=-1.0)),
            "method.loss.right.clip_high: -1.0. Allowed: 0 or more.",
        ),
        (
            with_method(loss=KL(other_policy="teacher")),
            "it reads 'logp@teacher', and the run has no 'teacher'",
        ),
        (with_method(loss=JSD("teacher")), "it reads 'jsd@teacher', and the run has no 'teacher'"),
        (
            with_method(advantage=grouped_by_term("style")),
            "it reads 'style', which is no reward of the env",
        ),
        (
            with_method(reference=ReferenceUpdate(1.5)),
            "method.reference.rate: 1.5. Allowed: 0 to 1.",
        ),
        (
            with_method(reference=ReferenceUpdate(every=0)),
            "method.reference.every: 0. Allowed: 1 or more.",
        ),
        (
            RECIPE.replace(aux_models=(AuxModel("ref"),)),
            "aux_models[0].name: 'ref'. Allowed: a name of its own.",
        ),
        (
            RECIPE.replace(aux_models=(AuxModel("a b"),)),
            "aux_models[0].name: 'a b'. Allowed: a name of its own.",
        ),
        (
            RECIPE.replace(aux_models=(AuxModel("twin"), AuxModel("twin"))),
            "aux_models[1].name: 'twin'. Allowed: a name of its own.",
        ),
        (
            RECIPE.replace(aux_models=(AuxModel("t", "poliy"),)),
            "aux_models[0].model: 'poliy' is no model. Did you",
        ),
        (
            RECIPE.replace(aux_head_learning_rate=-1.0),
            "aux_head_learning_rate: -1.0. Allowed: 0 or more, finite.",
        ),
        (
            with_method(loss=Confident()),
            "no signal 'entropie'. Did you mean 'entropy'? Allowed: collision, disagre",
        ),
        (
            with_method(advantage=chain(Center(), Center(lambda x, _: x))),
            "recipe.method.advantage.estimators[1].baseline: <lambda> has no address",
        ),
    ],
)
def test_invalid_recipes_are_rejected_with_the_place(recipe, message):
    with pytest.raises(ConfigError) as caught:
        check_recipe(recipe)
    assert message in str(caught.value)


def test_success_may_be_decided_by_a_term_of_a_term():
    env = SingleTurn((RewardTerm("math", ExactMatch()),))
    check_recipe(
        RECIPE.replace(env=env, evaluation=Evaluation(success=SuccessCriterion("math/acc")))
    )


def test_only_the_library_s_components_must_count_from_one():
    check_recipe(with_method(advantage=chain(Center(), Shifted(by=0))))


def test_reference_and_sampler_are_known_models():
    check_recipe(with_method(loss=Reinforce() + 0.1 * KL() + 0.1 * KL(other_policy="sampler")))
    check_signal_models({"logp", "entropy", "logp@ref"}, ["ref"])
    with pytest.raises(ConfigError, match="it reads 'logp@reff', and the run has no 'reff'"):
        check_signal_models({"logp@reff"}, ["ref"])


def test_the_first_tasks_of_every_source_are_validated():
    class Validator:
        def __init__(self) -> None:
            self.validated = []

        def validate_tasks(self, tasks) -> None:
            self.validated += tasks

    validator = Validator()
    few = [Task("few", "?")]
    many = [Task("many", "?")] * (MAX_TASKS_CHECKED + 1)
    check_tasks(validator, few, many)
    assert validator.validated == [*few, *many[:-1]]


def test_missing_column_is_rejected():
    method = Method(sampler=WithExpertSolution(GroupSampler(2), column="proof"))
    with pytest.raises(ConfigError, match="reads the column 'proof', which no task has"):
        check_columns(method, [Task("a", "?", columns={"solution": "!"})])
    check_columns(method, [Task("a", "?"), Task("b", "?", columns={"proof": "!"})])


def test_reward_terms_may_come_from_the_sampler():
    check_recipe(
        with_method(
            sampler=WithGreedyBaseline(GroupSampler(2)), advantage=grouped_by_term("greedy")
        )
    )
    again = ResampleUntilInformative(FirstTurnTree(2, 4), max_tries=2)
    check_recipe(with_method(sampler=again, advantage=grouped_by_term("first_turn")))
