"""What tests of methods share: `recorded`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
