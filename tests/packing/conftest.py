"""What tests of packing share: `laying` beside them, `tinylm` and `recurrent` of others."""

import sys
from pathlib import Path

here = Path(__file__).parent
sys.path += map(str, (here, here.with_name("policies"), here.with_name("engines")))
