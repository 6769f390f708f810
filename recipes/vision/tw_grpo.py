"""TW-GRPO on pictures: tokens count more where the group disagrees.

Dang et al., 2025, arXiv:2505.24718; `grupo/methods/tw_grpo.py` has its record. Questions have one
right option, for which the graded reward of the paper is that of GRPO, and there is no reward of
the format: the weights of tokens and the upper clip are what differs.

Named before the first run of all seeds: the accuracy of TW-GRPO minus that of GRPO, on as many
rollouts.

python recipes/vision/tw_grpo.py FOLDER [FIRST_SEED END]
"""

import sys

from scene_arms import GROUP_SIZE, GRPO, arm, print_table, scene_recipe

from grupo.methods.tw_grpo import tw_grpo
from grupo.recipe import Recipe


def tw_recipe(seed: int) -> Recipe:
    """TW-GRPO with the reward of GRPO.

    Args:
        seed: Seed of the run.
    """
    return scene_recipe(tw_grpo(GROUP_SIZE).replace(advantage=GRPO.advantage), seed)


if __name__ == "__main__":
    print_table({"TW-GRPO": arm(tw_recipe)}, ["accuracy", "consistent", "blind"], sys.argv[1:])
