"""The quickstart with DAPO in place of GRPO.

grupo train recipes/sums/dapo.py:RECIPE
"""

from grupo.methods.dapo import dapo
from grupo.toy.quickstart import RECIPE as QUICKSTART

RECIPE = QUICKSTART.replace(method=dapo(max_length=64, overlong_buffer=16, max_resample_rounds=2))
