"""Rollouts of earlier steps in the batch of a step."""

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.algo.replay_rules import FillFromBuffer, ReplayPlan, ReplayRequest, no_replay
from grupo.config.validate import check_recipe
from grupo.core.component import component
from grupo.core.requires import Requires
from grupo.models.base import AuxModel
from grupo.training.learner import Learner
from grupo.training.resume.extend import extend_run
from grupo.training.start import run_training
from grupo.util.errors import ConfigError
from tests.helpers import training_components, training_recipes

WITH_KL = Clip() + 0.5 * KL()
NO_REPLAY = training_recipes.REPLAY_BUFFER["method"].replace(replay=no_replay, loss=WITH_KL)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    training_components.save_models(folder)
    return str(folder)


@component
class SwapOne:
    """The oldest rollout of the buffer, twice, in the place of the first rollout of the step."""

    requires = Requires(replay_buffer=4)

    def __call__(self, request: ReplayRequest) -> ReplayPlan:
        everything = torch.ones(len(request.batch.reward), dtype=torch.bool)
        drawn = (0, 0) if len(request.replay_buffer.step) else ()
        trained = everything.clone()
        trained[0] = not drawn
        return ReplayPlan(drawn, trained, everything)


@component
class FirstOfEverySecondTask:
    """Reward 1 for the first rollout of tasks with an even number: the other groups are equal."""

    def __call__(self, task, rollouts):
        is_even = int(task.key.split()[-1]) % 2 == 0
        return [float(is_even and i == 0) for i in range(len(rollouts))]


def keep_none(groups):
    return []


def steps(recipe, count):
    learner = Learner(recipe)
    try:
        return [learner.step() for _ in range(count)], learner
    finally:
        learner.close()


def with_rule(model, rule):
    recipe = training_recipes.recipe("replay_buffer", model)
    return recipe.replace(method=recipe.method.replace(replay=rule, loss=WITH_KL))


@pytest.mark.slow
def test_drawn_rollouts_have_their_advantages_and_log_probs(model):
    (first, second), learner = steps(with_rule(model, SwapOne()), 2)
    assert len(learner.state.replay_buffer) == 4
    oldest = 4  # of the 8 rollouts of the first step, the last four are in the replay buffer
    length = int(first.batch.mask[oldest].sum())
    assert len(second.batch.reward) == 8 - 1 + 2
    for row in (7, 8):
        assert int(second.batch.mask[row].sum()) == length
        for name in ("advantage", "old_logp"):
            before = getattr(first.batch, name)[oldest, :length]
            assert getattr(second.batch, name)[row, :length].equal(before)
        assert second.batch.signals["off_context"][row, :length].eq(1).all()
        assert second.batch.signals["policy_version"][row, :length].eq(0).all()
        reference = first.batch.signals["logp@ref"][oldest, :length]
        assert torch.allclose(second.batch.signals["logp@ref"][row, :length], reference, atol=1e-5)
    assert second.batch.reward[7] == first.batch.reward[oldest]
    assert second.batch.row_group.tolist()[7:] == [2, 3]  # groups of their own
    rollouts = [r for group in second.collected.kept_groups for r in group.rollouts]
    assert [r.source for r in rollouts] == ["policy"] * 7 + ["replayed"] * 2
    assert [r.index for r in rollouts] == [1, 2, 3, 4, 5, 6, 7, -1, -1]
    assert second.metrics["replay/drawn"] == 2
    assert second.metrics["replay/age_mean"] == 1


@pytest.mark.slow
def test_a_rule_that_draws_nothing_changes_nothing(model):
    plain, learner = steps(
        training_recipes.recipe("replay_buffer", model).replace(method=NO_REPLAY), 3
    )
    undrawn, other = steps(with_rule(model, FillFromBuffer(6, max_share=0.0)), 3)
    for a, b in zip(plain, undrawn, strict=True):
        assert a.batch.advantage.equal(b.batch.advantage)
        assert {n: x for n, x in b.metrics.items() if n.startswith("reward")} == {
            n: x for n, x in a.metrics.items() if n.startswith("reward")
        }
    weights = other.policy.weights()
    assert all(x.equal(weights[name]) for name, x in learner.policy.weights().items())
    assert not any(name.startswith("replay/") for name in plain[-1].metrics)


@pytest.mark.slow
def test_the_places_without_advantage_are_filled(model):
    env = training_components.env_with_reward(FirstOfEverySecondTask())
    results, _ = steps(with_rule(model, FillFromBuffer(64)).replace(env=env), 5)
    drawn = [result.metrics["replay/drawn"] for result in results]
    assert drawn == [0, 4, 4, 8, 8]  # 4 for each odd task, from the second step on
    for result in results:
        assert len(result.batch.rollout) == 8
        if result.metrics["replay/drawn"] < result.metrics["replay/buffer_size"]:
            unfilled = result.metrics["advantage/zero_frac"]
            assert unfilled == 0 or result.metrics["replay/drawn"] == 0


@pytest.mark.parametrize("rule", [SwapOne(), FillFromBuffer(6)])
def test_a_step_whose_groups_are_all_dropped_draws_nothing(model, rule):
    recipe = with_rule(model, rule)
    recipe = recipe.replace(method=recipe.method.replace(filter=keep_none))
    results, learner = steps(recipe, 2)
    assert [result.metrics["replay/drawn"] for result in results] == [0, 0]
    assert len(learner.state.replay_buffer) == 0


def test_other_prompts_of_auxiliary_models_are_refused(model):
    aux = AuxModel("hot", prompt_override=training_components.prompt_with_exclamation)
    with pytest.raises(ConfigError, match="method"):
        check_recipe(with_rule(model, SwapOne()).replace(aux_models=(aux,)))


@pytest.mark.slow
def test_a_run_with_a_pool_is_not_extended_with_another_policy(model, tmp_path):
    recipe = with_rule(model, FillFromBuffer(6)).replace(max_steps=1)
    run_training(recipe, tmp_path / "run")
    other = training_recipes.recipe("lora", model).policy
    with pytest.raises(ConfigError, match="policy"):
        extend_run(tmp_path / "run", lambda old: old.replace(max_steps=2, policy=other))
