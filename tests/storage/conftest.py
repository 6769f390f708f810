"""What tests of storage share: `saving`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
