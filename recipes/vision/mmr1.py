"""MMR1's variance-aware sampling on pictures, against tasks in shuffled order.

Leng et al., 2025, arXiv:2509.21268; `grupo/rollouts/curricula/variance.py` has its record.

Named before the first run of all seeds: the accuracy on held-out questions of variance-aware
sampling minus that of GRPO, on as many rollouts. `informative` is the share of training groups
with different rewards from step 16 on, when shuffled tasks begin a second epoch.

python recipes/vision/mmr1.py FOLDER [FIRST_SEED END]
"""

import sys
from dataclasses import replace

from scene_arms import CORRECT, GRPO, arm, print_table, scene_recipe

from grupo.envs import RewardTerm, SingleTurn
from grupo.recipe import Recipe
from grupo.rewards import DistinctNgrams
from grupo.rollouts.curricula import VarianceAware

ENV = SingleTurn((CORRECT, RewardTerm("diversity", DistinctNgrams(3), weight=0.0)))


def mmr1_recipe(seed: int) -> Recipe:
    """GRPO on tasks half of which are sampled by variance.

    Args:
        seed: Seed of the run.
    """
    return scene_recipe(replace(GRPO, curriculum=VarianceAware()), seed, env=ENV)


if __name__ == "__main__":
    print_table({"MMR1": arm(mmr1_recipe)}, ["accuracy", "informative", "blind"], sys.argv[1:])
