"""What a recipe may not ask for, whether it came from a command line or from Python."""

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
from grupo.models.aux_models import AuxModel
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
from grupo.testing.smoke import run as proving
from grupo.toy.quickstart import RECIPE, TOY_MODEL


@component
class Confident(Loss):
    """Reads a signal that no language model has."""

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropie"})


def ByPartOf(part):
    return GroupedBy(Center(), ByRewardTerm(part))


@component
class Shifted:
    """A credit of somebody else's, which may count below 0."""

    by: int = -1

    def __call__(self, x, batch):
        return x - self.by


def with_(**changes):
    return RECIPE.replace(method=Method(**changes))


def policy(**changes):
    return RECIPE.replace(policy=replace(RECIPE.policy, **changes))


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_every_method_may_be_trained(entry):
    check_recipe(proving.echo_recipe(entry.method).replace(method=entry.method))


def test_what_grows_the_quickstarts_model_may_be_trained(tmp_path):
    check_recipe(TOY_MODEL.recipe(tmp_path))


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE.replace(max_grad_norm=math.inf),
        RECIPE.replace(learning_rate=0),
        RECIPE.replace(learning_rate=np.float64(1e-5)),
        RECIPE.replace(eval_tasks=0),
        with_(loss=Clip(math.inf, Linear(0.2, 0.3)) + (-0.01) * Entropy()),
        with_(loss=Warmup(0.5, Cosine(0.1)) * KL()),
        with_(sample=GroupSampler(1), credit=identity),
        with_(credit=chain(Center(), Shifted())),
        with_(
            sample=ResampleUntilInformative(FirstTurnTree(2, 2), 2),
            curriculum=DynamicSampling(ShuffledTasks(), 3),
        ),
    ],
)
def test_what_can_be_is_let_through(recipe):
    check_recipe(recipe)


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (RECIPE.replace(max_steps=0), "steps: 0. Allowed: 1 or more."),
        (RECIPE.replace(max_steps="5"), "steps: '5' does not fit. Allowed: a whole number."),
        (RECIPE.replace(max_steps=True), "steps: True does not fit. Allowed: a whole number."),
        (
            RECIPE.replace(prompts_per_step=2.0),
            "prompts: 2.0 does not fit. Allowed: a whole number.",
        ),
        (RECIPE.replace(save_every=0), "save_every: 0. Allowed: 1 or more."),
        (
            RECIPE.replace(max_grad_norm=math.nan),
            "max_norm: nan. Allowed: above 0; inf clips nothing.",
        ),
        (
            RECIPE.replace(max_grad_norm=Linear(1, 2)),
            "max_norm: Linear(start=1, end=2) does not fit.",
        ),
        (RECIPE.replace(learning_rate=math.nan), "lr: nan. Allowed: 0 or more, finite."),
        (RECIPE.replace(learning_rate=math.inf), "lr: inf. Allowed: 0 or more, finite."),
        (
            RECIPE.replace(learning_rate="fast"),
            "lr: 'fast' does not fit. Allowed: a number or Cosine(…)",
        ),
        (
            RECIPE.replace(learning_rate=Linear(1.0, -0.1)),
            "at step 19. Allowed: 0 or more, finite.",
        ),
        (
            RECIPE.replace(learning_rate=Warmup(1.5, 1e-5)),
            "lr.share: 1.5. Allowed: above 0, at most 1.",
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
            "evaluation.solved.part: 'corect'. Did you mean 'correct'? Allowed: correct.",
        ),
        (policy(limit=0), "policy.max_new_tokens: 0. Allowed: 1 or more."),
        (policy(budget=0), "policy.tokens_per_microbatch: 0. Allowed: 1 or more."),
        (
            policy(stop="####"),
            "policy.stop_strings: '####' does not fit. Allowed: a tuple (…,) of which",
        ),
        (
            policy(stop=("a", "")),
            "policy.stop_strings: ('a', ''). Allowed: a tuple of texts, none of them empty.",
        ),
        (policy(dtype="float8"), "policy.dtype: 'float8'. Allowed: float32 or bfloat16."),
        (policy(device="tpu"), "device: 'tpu' is not available. Did you mean 'cpu'? Allowed: auto, cpu"),
        (with_(sample=GroupSampler(1)), "method.sample: a group of 1 has nobody"),
        (with_(sample=GroupSampler(0)), "method.sample.n: 0. Allowed: 1 or more."),
        (
            with_(sample=ResampleUntilInformative(FirstTurnTree(0, 2), 2)),
            "method.sample.inner.trunks: 0. Allowed",
        ),
        (
            with_(curriculum=DynamicSampling(ShuffledTasks(), 0)),
            "method.curriculum.rounds: 0. Allowed: 1 or",
        ),
        (with_(plan=Updates(1, 0)), "method.plan.minibatches: 0. Allowed: 1 or more."),
        (with_(weigh=ConstantLength(-4)), "method.weigh.length: -4. Allowed: 1 or more."),
        (with_(loss=Clip(-0.2)), "method.loss.low: -0.2. Allowed: 0 or more."),
        (
            with_(loss=Clip() + Clip(clip_high=-1.0)),
            "method.loss.right.high: -1.0. Allowed: 0 or more.",
        ),
        (
            with_(loss=KL(other_policy="teacher")),
            "it reads 'logp@teacher', and the run has no 'teacher'",
        ),
        (with_(loss=JSD("teacher")), "it reads 'jsd@teacher', and the run has no 'teacher'"),
        (with_(credit=ByPartOf("style")), "it reads 'style', and no reward of the env is called"),
        (with_(reference=ReferenceUpdate(1.5)), "method.reference.rate: 1.5. Allowed: 0 to 1."),
        (
            with_(reference=ReferenceUpdate(every=0)),
            "method.reference.every: 0. Allowed: 1 or more.",
        ),
        (
            RECIPE.replace(aux_models=(AuxModel("ref"),)),
            "others[0].name: 'ref'. Allowed: a name that nobody",
        ),
        (
            RECIPE.replace(aux_models=(AuxModel("a b"),)),
            "others[0].name: 'a b'. Allowed: a name that nobody",
        ),
        (
            RECIPE.replace(aux_models=(AuxModel("twin"), AuxModel("twin"))),
            "others[1].name: 'twin'. Allowed: a name that nobody else has.",
        ),
        (
            RECIPE.replace(aux_models=(AuxModel("t", "poliy"),)),
            "others[0].who: 'poliy' is no model. Did you",
        ),
        (
            RECIPE.replace(aux_head_learning_rate=-1.0),
            "helper_lr: -1.0. Allowed: 0 or more, finite.",
        ),
        (
            with_(loss=Confident()),
            "no signal 'entropie'. Did you mean 'entropy'? Allowed: collision, disagre",
        ),
        (
            with_(credit=chain(Center(), Center(lambda x, _: x))),
            "recipe.method.credit.steps[1].baseline: <lambda> has no address",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_place(recipe, said):
    with pytest.raises(ConfigError) as refusal:
        check_recipe(recipe)
    assert said in str(refusal.value)


def test_a_part_of_a_part_may_say_what_is_solved():
    env = SingleTurn((RewardTerm("math", ExactMatch()),))
    check_recipe(
        RECIPE.replace(env=env, evaluation=Evaluation(success=SuccessCriterion("math/acc")))
    )


def test_only_the_pieces_of_the_library_are_held_to_count_from_one():
    check_recipe(with_(credit=chain(Center(), Shifted(by=0))))


def test_the_reference_and_the_sampler_are_known_by_name():
    check_recipe(with_(loss=Reinforce() + 0.1 * KL() + 0.1 * KL(other_policy="sampler")))
    check_signal_models({"logp", "entropy", "logp@ref"}, ["ref"])
    with pytest.raises(ConfigError, match="it reads 'logp@reff', and the run has no 'reff'"):
        check_signal_models({"logp@reff"}, ["ref"])


def test_a_policy_looks_at_the_first_of_all_tasks():
    class Admits:
        def __init__(self) -> None:
            self.seen = []

        def admit(self, tasks) -> None:
            self.seen += tasks

    policy, few, many = Admits(), [Task("few", "?")], [Task("many", "?")] * (MAX_TASKS_CHECKED + 1)
    check_tasks(policy, few, many)
    assert policy.seen == [*few, *many[:-1]]


def test_a_column_that_no_task_has_is_refused():
    method = Method(sampler=WithExpertSolution(GroupSampler(2), column="proof"))
    with pytest.raises(ConfigError, match="reads their column 'proof', and none has it"):
        check_columns(method, [Task("a", "?", columns={"solution": "!"})])
    check_columns(method, [Task("a", "?"), Task("b", "?", columns={"proof": "!"})])


def test_a_part_that_the_sampler_gives_is_no_reward_s():
    check_recipe(with_(sample=WithGreedyBaseline(GroupSampler(2)), credit=ByPartOf("greedy")))
    again = ResampleUntilInformative(FirstTurnTree(2, 4), max_tries=2)
    check_recipe(with_(sample=again, credit=ByPartOf("trunk")))
