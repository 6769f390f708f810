"""T-PPO: one truncated and one finished answer with equal values, and answers over three steps."""

import asyncio
from dataclasses import replace

import pytest
import torch

from grupo.config.validate import check_recipe
from grupo.core.aux_heads import LinearHead
from grupo.core.batch import Signals
from grupo.envs import MultiTurn
from grupo.methods.t_ppo import FinishedValueLoss, WindowTokenMean, t_ppo
from grupo.rollouts.curricula import ShuffledTasks, UnfinishedFirst
from grupo.rollouts.samplers import GroupSampler, WindowSampler
from grupo.testing.batches import make_batch
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script
from tests.helpers.training_components import LetterGame

V = [0.2, 0.4, 0.5]


def answers(off_context=((0.0,) * 3,) * 2):
    return make_batch(
        group=[0, 0],
        reward=[1.0, 7.0],
        length=[3, 3],
        reward_terms={"cut": [0.0, 1.0]},
        signals={"value": [V, V], "off_context": off_context},
    )


def test_finished_answer_has_gae():
    A = answers().with_advantage(t_ppo(gae_lambda=0.95).advantage).advantage[0]
    assert A.tolist() == pytest.approx([0.2 + 0.95 * (0.1 + 0.95 * 0.5), 0.1 + 0.475, 0.5])


def test_truncated_answer_bootstraps_value_and_ignores_reward():
    A = answers().with_advantage(t_ppo(gae_lambda=0.95).advantage).advantage[1]
    assert A.tolist() == pytest.approx([0.2 + 0.95 * 0.1, 0.1, 0.0])  # d = 0.2, 0.1, 0


def test_value_loss_covers_finished_answers_only():
    batch = answers().with_advantage(t_ppo().advantage)
    pi = Signals(
        logp=batch.old_logp,
        value=torch.tensor([V, V], dtype=torch.float64, requires_grad=True),
    )
    loss = FinishedValueLoss()(pi, batch)
    assert loss.tolist() == [pytest.approx([0.64, 0.36, 0.25]), [0.0] * 3]
    (slope,) = torch.autograd.grad(loss.sum(), pi["value"])
    assert slope.tolist() == [pytest.approx([-1.6, -1.2, -1.0]), [0.0] * 3]


def test_each_token_is_trained_on_in_the_step_that_generated_it():
    method = t_ppo(gae_lambda=1.0)
    # the finished answer got its last token in this step, the cut one its last two
    batch = answers([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]).with_advantage(method.advantage)
    assert batch.advantage.tolist() == [
        pytest.approx([0.8, 0.6, 0.5]),
        pytest.approx([0.3, 0.1, 0]),
    ]
    pi = Signals(
        logp=batch.old_logp.clone().requires_grad_(),
        value=torch.tensor([V, V], dtype=torch.float64, requires_grad=True),
    )
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    policy, value = torch.autograd.grad(loss, [pi.logp, pi["value"]])
    assert policy.tolist() == [[0.0, 0.0, pytest.approx(-0.5 / 3)], pytest.approx([0, -0.1 / 3, 0])]
    # the value function sees all tokens of the finished answer: 2 (V - 1) / 3
    assert value.tolist() == [pytest.approx([-1.6 / 3, -1.2 / 3, -1.0 / 3]), [0.0] * 3]


def test_without_tokens_of_this_step_the_weights_are_finite():
    batch = answers([[1.0] * 3] * 2)
    assert WindowTokenMean()(batch).tolist() == [[1.0] * 3] * 2


def test_an_answer_is_trained_on_over_three_steps():
    method = t_ppo(1, window=3, max_length=24)
    actor = script(lambda context, key: "abcdefg."[len(context) - 1])
    task, trained, cut = TASK, [], []
    for _ in range(3):
        group = asyncio.run(method.sampler(task, Once(lambda text: 1.0), actor))
        task = replace(TASK, unfinished_rollouts=group.rollouts)
        batch = collate([group], lambda rows: {})
        trained.append(
            (batch.mask & (batch.signals["off_context"] == 0))[0].nonzero()[:, 0].tolist()
        )
        cut.append(batch.reward_terms["cut"].item())
    assert trained == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert cut == [1.0, 1.0, 0.0]


def test_a_run_continues_cut_answers_in_the_next_step():
    recipe = echo_recipe(t_ppo(), max_steps=4).replace(method=t_ppo(4, window=1, max_length=4))
    learner = Learner(recipe)
    lengths = []
    for _ in range(3):
        kept = {key: len(r) for key, r in learner.state.history.unfinished_rollouts.items()}
        result = learner.step()
        groups = result.collected.sampled_groups
        continued = {g.task.key: len(g.rollouts) for g in groups if g.task.unfinished_rollouts}
        assert continued == dict([*kept.items()][: len(groups)])
        lengths.append({r.length for g in groups for r in g.rollouts})
        assert result.metrics["tokens/generated"] == sum(len(g.rollouts) for g in groups)
    assert lengths == [{1}, {2}, {1, 3}]  # a new task takes the place of a finished group


def test_generation_cannot_run_ahead_of_continued_answers():
    recipe = echo_recipe(t_ppo())
    check_recipe(recipe)
    with pytest.raises(ConfigError, match=r"max_staleness: 1. Allowed: 0 with WindowSampler"):
        check_recipe(recipe.replace(max_staleness=1))


def test_an_environment_with_sessions_is_refused():
    recipe = echo_recipe(t_ppo()).replace(env=MultiTurn(LetterGame, max_turns=3))
    with pytest.raises(ConfigError, match=r"env: MultiTurn, .* an environment without sessions"):
        check_recipe(recipe)
    check_recipe(recipe.replace(method=recipe.method.replace(sampler=GroupSampler(2))))


def test_a_window_longer_than_an_answer_is_an_error():
    with pytest.raises(
        ConfigError, match=r"WindowSampler.window: 9. Allowed: at most max_length, 8"
    ):
        t_ppo(window=9, max_length=8)


def test_default_hyperparameters():
    assert t_ppo().requires.heads == (LinearHead("value"),)
    assert t_ppo().sampler == WindowSampler(8, 8192, 24576)
    assert t_ppo().curriculum == UnfinishedFirst(ShuffledTasks())
