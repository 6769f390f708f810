"""The training of claims does what the trainer does, and methods learn in it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from grupo.algo.filters import Replay
from grupo.algo.minibatches import Updates
from grupo.algo.optimizers import Adam
from grupo.distributed.base import SINGLE_RANK
from grupo.evidence.claims.claim import Arm, ArmBudget, Setting
from grupo.evidence.claims.environments import Corridor, KeyPositions, ManyModes, PaddedAnswers
from grupo.evidence.claims.policy import LinearPolicy
from grupo.evidence.claims.rewarded import RewardedArm
from grupo.evidence.claims.train import HEAD_LEARNING_RATE, MAX_GRAD_NORM, TabularRun, train_arm
from grupo.method import Method
from grupo.models.base import AuxModels
from grupo.recipe import Recipe
from grupo.rollouts.history import History
from grupo.rollouts.replay_buffer import ReplayBuffer
from grupo.rollouts.statistic_store import StatisticStore
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.learner import Learner
from grupo.training.resume.state import AUX_HEAD_OPTIMIZER, POLICY_OPTIMIZER, State
from grupo.training.update.records import ActionSignals
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng
from grupo.util.timing import Stopwatch
from tests.helpers.fast_cases import fast_cases

PADDED = Setting("padded", "", PaddedAnswers(num_tasks=4, max_length=8), rollouts_per_step=32)
MODES = Setting("modes", "", ManyModes(num_tasks=4, num_items=4), rollouts_per_step=32)
TURNS = Setting(
    "turns", "", Corridor(num_tasks=4, num_states=3, max_length=6), rollouts_per_step=32
)
REUSE = Setting(
    "reuse",
    "",
    KeyPositions(num_tasks=4, length=5, max_keys=2),
    rollouts_per_step=32,
    updates=Updates(epochs=2, minibatches=2),
)


class PolicyOfLearner(LinearPolicy):
    """The linear policy with what the learner asks a policy for beside signals."""

    tokens_per_microbatch = 1 << 20

    def encode(self, rollouts):
        return {}

    def release_memory(self) -> None:
        pass

    def halve_microbatch(self) -> str:
        return ""

    def update_unsharded_copy(self) -> None:
        pass


def learner_of(run: TabularRun) -> Learner:
    """A learner with the weights, models and history of a run, without its generation."""
    learner = object.__new__(Learner)
    policy = PolicyOfLearner(run.env, run.method.requires.heads)
    policy.move_towards(run.policy, 1.0)
    policy.compared = run.policy.compared
    learner.policy = policy
    learner.recipe = Recipe(
        policy=None,
        env=None,
        tasks=run.tasks,
        method=run.method,
        max_grad_norm=MAX_GRAD_NORM,
        old_logp_tolerance=float("inf"),
        seed=run.seed,
    )
    learner.aux_models = AuxModels({"ref": run.reference})
    optimizers = {POLICY_OPTIMIZER: Adam()(policy.parameters())}
    if run.method.requires.heads:
        optimizers[AUX_HEAD_OPTIMIZER] = Adam()(list(policy.heads.parameters()))
    statistics = run.method.requires.task_statistics
    learner.state = State(
        policy,
        optimizers,
        learner.aux_models,
        run.tasks,
        history=History(statistics_by_task=StatisticStore(statistics)),
        replay_buffer=ReplayBuffer(),
        ema_weights={},
    )
    learner.state.sampler_logp_diff = 0.0
    learner.stopwatch = Stopwatch()
    learner.step_messages = []
    learner.ranks = SINGLE_RANK
    return learner


@pytest.mark.parametrize(
    ("setting", "method"),
    [
        (PADDED, "grpo()"),
        (PADDED, "dr_grpo(max_length=8)"),
        (PADDED, "drpo(max_length=8)"),  # a loss that couples rows
        (MODES, "max_rl()"),
        (MODES, "flowrl()"),  # a head
        (REUSE, "gspo()"),
        (REUSE, "cispo(group_size=8)"),
        (REUSE, "dcpo_dynamic_clip(group_size=8)"),  # statistics over the history
        (TURNS, "gigpo()"),
        (TURNS, "ppo(group_size=8)"),
    ],
    ids=lambda value: value.name if isinstance(value, Setting) else value,
)
def test_a_step_changes_the_weights_as_the_learner_does(setting, method):
    run = TabularRun(setting, Arm(method), seed=3)
    learner = learner_of(run)
    sampled, kept = run.sampled_and_kept_groups(run.method)
    rates = {POLICY_OPTIMIZER: setting.learning_rate, AUX_HEAD_OPTIMIZER: HEAD_LEARNING_RATE}
    batch_builder = learner._batch_builder(run.method)
    batch = batch_builder(CollectedGroups(tuple(sampled), tuple(kept)))
    update = learner._updater()
    update(run.method, batch, learning_rates=rates, step=0, action_signals=ActionSignals())
    before = run.policy.table.detach().clone()
    run.run_updates(run.method, run.build_batch(run.method, kept))
    assert not torch.equal(run.policy.table, before)
    for own, expected in zip(run.policy.parameters(), learner.policy.parameters(), strict=True):
        assert torch.equal(own, expected)
    for own, expected in zip(
        run.policy.heads.parameters(), learner.policy.heads.parameters(), strict=True
    ):
        assert torch.equal(own, expected)


@pytest.mark.parametrize("setting", [PADDED, MODES, REUSE, TURNS], ids=lambda setting: setting.name)
def test_the_batch_has_the_sampled_cells_and_items_in_their_places(setting):
    run = TabularRun(setting, Arm("grpo(kl_coef=0.0)"), seed=1)
    run.step()
    _, kept = run.sampled_and_kept_groups(run.method)
    batch = run.build_batch(run.method, kept)
    logp = run.policy.signals(batch)["logp"]
    assert torch.allclose(logp, batch.old_logp * batch.mask, atol=1e-6)
    assert (batch.lengths > 0).all()
    turns = batch.turn[batch.mask].max()
    assert (turns > 0) == setting.env(0).separate_turns


def test_an_engine_with_noise_samples_from_another_policy_than_the_trainers():
    noisy = replace(REUSE, engine_noise=1.0)
    run = TabularRun(noisy, Arm("tis()"), seed=1)
    _, kept = run.sampled_and_kept_groups(run.method)
    batch = run.build_batch(run.method, kept)
    logp = run.policy.signals(batch)["logp"]
    assert torch.allclose(logp, batch.old_logp, atol=1e-6)
    difference = (batch.signals["logp@sampler"] - logp)[batch.mask]
    assert 0.5 < difference.std() < 2.0


def test_both_arms_of_a_pair_have_the_same_tasks_and_the_first_rollouts():
    runs = [TabularRun(MODES, Arm(method), seed=5) for method in ("grpo()", "max_rl(group_size=8)")]
    groups = [run.sampled_and_kept_groups(run.method)[0] for run in runs]
    assert groups[0] == groups[1]
    repeated = TabularRun(MODES, Arm("grpo()", repetition=1), seed=5)
    assert np.array_equal(repeated.env.prior, runs[0].env.prior)
    assert repeated.sampled_and_kept_groups(repeated.method)[0] != groups[0]


def test_budgets_are_equal_rollouts_or_equal_steps():
    short = replace(PADDED, steps=10)
    double = Arm("grpo(kl_coef=0.0)", rollouts_per_step=64)
    rollouts = {
        arm.label: train_arm(short, arm, 0)["rollouts"]
        for arm in (Arm("grpo()"), double, replace(double, budget=ArmBudget.STEPS))
    }
    assert list(rollouts.values()) == [320.0, 320.0, 640.0]


def test_dynamic_sampling_refills_and_counts_every_rollout():
    run = TabularRun(REUSE, Arm("dapo(max_length=8, overlong_buffer=2, group_size=8)"), seed=0)
    sampled, kept = run.sampled_and_kept_groups(run.method)
    assert len(sampled) > len(kept)
    assert all(group.has_reward_variance for group in kept)


def test_groups_have_the_replays_of_earlier_steps():
    replaying = RewardedArm("", built=Method(filter=Replay(1)))
    run = TabularRun(MODES, replaying, seed=0)
    assert not any(group.task.replays for group in run.sampled_and_kept_groups(run.method)[0])
    run.step()
    sampled, kept = run.sampled_and_kept_groups(run.method)
    known = run.history.replay_rollouts
    assert [group.task.replays for group in sampled] == [known[g.task.key] for g in sampled]
    assert {r.source for group in kept for r in group.rollouts} == {"policy", "replayed"}


def test_the_reference_follows_the_policy_as_the_method_demands():
    run = TabularRun(MODES, Arm("ema_pg()"), seed=0)
    run.setting = replace(MODES, steps=100)
    for _ in range(9):
        run.step()
    assert not run.reference.table.any()
    run.step()
    assert torch.allclose(run.reference.table, 0.05 * run.policy.table, atol=1e-7)


@pytest.mark.parametrize("method", ["remax()", "t_ppo()", "hbpo()", "elastic_reasoning()"])
def test_a_sampler_that_is_not_vectorised_is_refused(method):
    with pytest.raises(ConfigError, match=r"Allowed: GroupSampler"):
        TabularRun(MODES, Arm(method), seed=0)


@pytest.mark.slow
def test_a_run_repeats_exactly_and_depends_on_its_seed():
    short = replace(MODES, steps=10)
    first, second = (train_arm(short, Arm("grpo()"), 0) for _ in range(2))
    assert first == second
    assert train_arm(short, Arm("grpo()"), 1) != first


@pytest.mark.parametrize(
    "setting", fast_cases(1, [PADDED, TURNS]), ids=lambda setting: setting.name
)
def test_the_oracle_learns_most_and_grpo_learns_something(setting):
    short = replace(setting, steps=20)
    metrics = {
        method: train_arm(short, Arm(method), 0)
        for method in ("oracle", "grpo(kl_coef=0.0)", "untrained")
    }
    oracle, grpo, untrained = metrics.values()
    assert oracle["success_auc"] > grpo["success_auc"] > untrained["success_auc"] + 0.05


def test_schedules_and_controllers_reach_the_method():
    run = TabularRun(MODES, Arm("skywork_or1(group_size=8, target_entropy=9.0)"), seed=0)
    run.step()
    run.step()
    assert len(run.history.metrics["policy/entropy"]) == 2
    assert run.method.controller_metric_names == {"policy/entropy"}


def test_minibatches_are_drawn_from_the_runs_seed():
    run = TabularRun(REUSE, Arm("grpo()"), seed=4)
    _, kept = run.sampled_and_kept_groups(run.method)
    batch = run.build_batch(run.method, kept)
    plans = [
        [part.rollout.tolist() for part in REUSE.updates(batch, make_rng(run.seed, "plan", step))]
        for step in (0, 0, 1)
    ]
    assert plans[0] == plans[1] != plans[2]
