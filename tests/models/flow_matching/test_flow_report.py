"""Methods published for language models train flow models unchanged."""

import math

import pytest
import torch

from grupo.algo.advantages import Center
from grupo.envs import RewardTerm
from grupo.envs.image_generation import ImageGeneration
from grupo.methods.cispo import cispo
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.dual_clip import dual_clip
from grupo.methods.gmpo import gmpo
from grupo.methods.gpg import gpg
from grupo.methods.grpo import grpo
from grupo.methods.gspo import gspo
from grupo.methods.k2_kl import k2_kl
from grupo.methods.lite_ppo import lite_ppo
from grupo.methods.max_rl import max_rl
from grupo.methods.reinforce_pp import reinforce_pp
from grupo.methods.rloo import rloo
from grupo.methods.sapo import sapo
from grupo.methods.tis import tis
from grupo.methods.topr import topr
from grupo.methods.vespo import vespo
from grupo.recipe import Evaluation, Recipe
from grupo.rewards.image_shapes import rollout_image
from grupo.tasks.shape_captions import CaptionTasks
from grupo.training.learner import Learner

METHODS = {
    "cispo": cispo(group_size=4),
    "dr_grpo": dr_grpo(max_length=4, group_size=4),
    "dual_clip": dual_clip(group_size=4),
    "gmpo": gmpo(group_size=4),
    "gpg": gpg(group_size=4),
    "grpo": grpo(group_size=4),
    "gspo": gspo(group_size=4),
    "k2_kl": k2_kl(group_size=4),
    "lite_ppo": lite_ppo(group_size=4),
    "max_rl": max_rl(group_size=4),
    "reinforce_pp": reinforce_pp(group_size=4),
    "rloo": rloo(group_size=4),
    "sapo": sapo(group_size=4),
    "tis": tis(group_size=4),
    "topr": topr(group_size=4),
    "vespo": vespo(group_size=4),
}


def red(task, rollout):
    """Redness of the image, 0 to 1."""
    return rollout_image(rollout)[0].mean().item()


@pytest.fixture
def recipe(flow):
    return Recipe(
        policy=flow,
        env=ImageGeneration((RewardTerm("red", red),)),
        tasks=CaptionTasks(("a red square", "a blue circle")),
        eval_tasks=0,
        max_steps=1,
        prompts_per_step=2,
        learning_rate=1e-3,
        evaluation=Evaluation(attempts=1),
    )


def step(recipe):
    """Run one step; return its result and the fraction of weights that changed."""
    learner = Learner(recipe)
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    result = learner.step()
    after = learner.policy.weights()
    assert all(x.isfinite().all() for x in after.values())
    changed = [name for name, x in after.items() if not torch.equal(x, before[name])]
    return result, len(changed) / len(after)


@pytest.mark.parametrize("name", METHODS)
def test_method_trains_a_flow_model(name, recipe):
    result, changed_frac = step(recipe.replace(method=METHODS[name]))
    assert result.batch.mask.shape == (8, 4)
    assert result.batch.mask.all()
    assert math.isfinite(result.metrics["loss"])
    assert 0 < result.metrics["grad_norm"] < math.inf
    assert result.metrics["sampler_mismatch/logp_diff_max"] < 1e-5  # ratio 1 to rounding
    assert changed_frac > 0.9


def test_methods_cover_many_advantage_estimators_and_losses():
    assert len({method.advantage for method in METHODS.values()}) >= 6
    assert len({method.loss for method in METHODS.values()}) >= 10


def test_equal_rewards_give_no_gradient(recipe):
    method = METHODS["dr_grpo"]
    assert method.advantage == Center()
    result, changed_frac = step(
        recipe.replace(method=method, env=ImageGeneration((RewardTerm("same", same),)))
    )
    assert result.metrics["grad_norm"] == 0
    assert changed_frac == 0


def same(task, rollout):
    return 0.5
