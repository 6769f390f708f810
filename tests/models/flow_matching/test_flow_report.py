"""Methods made for words train a flow model as they are: an action is a denoising step."""

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

SHELF = {
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
    """How red the picture is, 0 to 1."""
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
    """What a learner's step came to, and whether every weight moved to a finite one."""
    learner = Learner(recipe)
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    learned = learner.step()
    now = learner.policy.weights()
    assert all(x.isfinite().all() for x in now.values())
    moved = [name for name, x in now.items() if not torch.equal(x, before[name])]
    return learned, len(moved) / len(now)


@pytest.mark.parametrize("name", SHELF)
def test_a_method_of_the_shelf_learns_from_pictures(name, recipe):
    learned, moved = step(recipe.replace(method=SHELF[name]))
    assert learned.batch.mask.shape == (8, 4)
    assert learned.batch.mask.all()
    assert math.isfinite(learned.metrics["loss"])
    assert 0 < learned.metrics["grad_norm"] < math.inf
    assert learned.metrics["sampler_mismatch/logp_diff_max"] < 1e-5  # ratio 1 to rounding
    assert moved > 0.9


def test_they_are_of_ten_credits_and_losses_at_least():
    assert len({method.advantage for method in SHELF.values()}) >= 6
    assert len({method.loss for method in SHELF.values()}) >= 10


def test_without_differing_rewards_nothing_is_learned(recipe):
    method = SHELF["dr_grpo"]
    assert method.advantage == Center()
    learned, moved = step(
        recipe.replace(method=method, env=ImageGeneration((RewardTerm("same", same),)))
    )
    assert learned.metrics["grad_norm"] == 0
    assert moved == 0


def same(task, rollout):
    return 0.5
