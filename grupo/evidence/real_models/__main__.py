"""Write docs/real_model.md: `python -m grupo.evidence.real_models docs/real_model.md`."""

import sys
from pathlib import Path

from grupo.evidence.real_models.page import real_model_page

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(real_model_page(), encoding="utf-8")
