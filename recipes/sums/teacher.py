"""The quickstart with a teacher: its own model, trained before, says how likely each token was.

grupo train --run runs/first
grupo export runs/first teacher
grupo train recipes/sums/teacher.py:RECIPE
"""

from grupo.methods.kdrl import kdrl
from grupo.models.aux_models import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.toy.quickstart import RECIPE as QUICKSTART

RECIPE = QUICKSTART.replace(
    method=kdrl(), aux_models=(AuxModel("teacher", CausalLM("teacher", max_new_tokens=64)),)
)
