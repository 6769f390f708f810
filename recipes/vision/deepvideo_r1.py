"""DeepVideo-R1's Reg-GRPO on clips: the advantage is regressed instead of clipped.

Park et al., 2025, arXiv:2506.07464; `grupo/methods/reg_grpo.py` has its record.

Named before the first run of all seeds: the temporal IoU on held-out clips of Reg-GRPO minus that
of GRPO, on as many rollouts and with one update per step. Neither has a KL divergence.

python recipes/vision/clip_arms.py      # writes the model that the recipe starts from
grupo train recipes/vision/deepvideo_r1.py:RECIPE
python recipes/vision/deepvideo_r1.py FOLDER [FIRST_SEED END]
"""

import sys

from clip_arms import arm, clip_recipe, print_table

from grupo.methods.reg_grpo import reg_grpo
from grupo.recipe import Recipe


def deepvideo_recipe(seed: int = 0) -> Recipe:
    """Reg-GRPO without a KL divergence.

    Args:
        seed: Seed of the run.
    """
    return clip_recipe(reg_grpo(kl_coef=0.0), seed)


RECIPE = deepvideo_recipe()

if __name__ == "__main__":
    print_table({"Reg-GRPO": arm(deepvideo_recipe)}, sys.argv[1:])
