"""PAPO on pictures: the loss rewards tokens that depend on the picture.

Wang et al., 2025, arXiv:2507.06448; `grupo/methods/papo.py` has its record.

Named before the first run of all seeds: the accuracy on held-out questions of PAPO minus that of
GRPO, on as many rollouts. Both have one update per step and no KL divergence, for which the
authors' scripts give the coefficients 0.01 and 0.03.

python recipes/vision/papo.py FOLDER [FIRST_SEED END]
"""

import sys
from dataclasses import replace

from scene_arms import GROUP_SIZE, arm, print_table, scene_recipe

from grupo.algo.minibatches import Updates
from grupo.method import Method
from grupo.methods.papo import papo
from grupo.models.base import AuxModel
from grupo.models.multimodal.views import MaskedImages
from grupo.recipe import Recipe

MASKED = AuxModel("masked", prompt_override=MaskedImages(0.6, patch=8))  # pictures of 32 x 32


def papo_recipe(seed: int, perception_coef: float = 0.01, entropy_coef: float = 0.03) -> Recipe:
    """PAPO without a KL divergence.

    Args:
        seed: Seed of the run.
        perception_coef: Weight of the divergence from the masked view.
        entropy_coef: Weight of the entropies.
    """
    method: Method = papo(GROUP_SIZE, perception_coef, entropy_coef, kl_coef=0.0)
    return scene_recipe(replace(method, updates=Updates()), seed, aux_models=[MASKED])


if __name__ == "__main__":
    print_table({"PAPO": arm(papo_recipe)}, ["accuracy", "blind", "consistent"], sys.argv[1:])
