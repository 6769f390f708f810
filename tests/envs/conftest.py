"""What tests of worlds share: `judging`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
