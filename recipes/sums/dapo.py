"""The quickstart with DAPO in place of GRPO.

grupo train recipes/sums/dapo.py:RECIPE
"""

from grupo.methods.dapo import dapo
from grupo.toy.quickstart import RECIPE as QUICKSTART

RECIPE = QUICKSTART.but(method=dapo(limit=64, margin=16, rounds=2))
