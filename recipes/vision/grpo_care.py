"""GRPO-CARE on pictures: a bonus for correct answers that follow from their reasoning.

Chen et al., 2025, arXiv:2506.16141; `grupo/methods/grpo_care.py` has its record.

Named before the first run of all seeds: the share of answers that follow from the description
before them (`consistent`) of GRPO-CARE minus that of GRPO, on as many rollouts.

python recipes/vision/grpo_care.py FOLDER [FIRST_SEED END]
"""

import sys
from dataclasses import replace

from scene_arms import GROUP_SIZE, arm, print_table, scene_recipe

from grupo.methods.grpo_care import grpo_care
from grupo.recipe import Recipe
from grupo.rollouts.samplers import GroupSampler, WithAnswerSpan


def care_recipe(seed: int) -> Recipe:
    """GRPO-CARE, whose answers lie inside <answer>.

    Args:
        seed: Seed of the run.
    """
    sampler = WithAnswerSpan(GroupSampler(GROUP_SIZE))
    return scene_recipe(replace(grpo_care(GROUP_SIZE), sampler=sampler), seed)


if __name__ == "__main__":
    print_table({"GRPO-CARE": arm(care_recipe)}, ["consistent", "accuracy", "blind"], sys.argv[1:])
