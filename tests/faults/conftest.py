"""Lets the tests here, and the processes that they start, share `faultkit`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
