"""Listener-rewarded thinking on pictures: the reasoning must convince a frozen model.

Gambashidze et al., 2025, arXiv:2506.22832; `grupo/methods/listener.py` has its record.

Named before the first run of all seeds: the accuracy on held-out questions with the listener minus
that of GRPO, on as many rollouts. `agrees` is the share of answers that the listener finds
likeliest after the description.

python recipes/vision/listener.py FOLDER [FIRST_SEED END]
"""

import sys

from scene_arms import CORRECT, GROUP_SIZE, arm, listener_term, print_table, scene_recipe

from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.listener import listener
from grupo.recipe import Recipe
from grupo.rewards import TagFormat


def listener_recipe(seed: int) -> Recipe:
    """GRPO with format, correctness and a listener, another toy model.

    Args:
        seed: Seed of the run.
    """
    env = SingleTurn((CORRECT, RewardTerm("format", TagFormat()), listener_term(weight=1.0)))
    return scene_recipe(listener(GROUP_SIZE), seed, env=env)


if __name__ == "__main__":
    METRICS = ["accuracy", "agrees", "consistent", "blind"]
    print_table({"listener": arm(listener_recipe)}, METRICS, sys.argv[1:])
