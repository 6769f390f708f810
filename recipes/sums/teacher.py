"""The quickstart with a teacher: a model trained before scores the policy's tokens.

grupo train --run runs/first
grupo export runs/first teacher
grupo train recipes/sums/teacher.py:RECIPE
"""

from grupo.methods.kdrl import kdrl
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.toy.quickstart import RECIPE as QUICKSTART

RECIPE = QUICKSTART.replace(
    method=kdrl(), aux_models=(AuxModel("teacher", CausalLM("teacher", max_new_tokens=64)),)
)
