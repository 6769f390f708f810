"""Write the pages of all methods and docs/fidelity.md: `python -m grupo.catalogue docs`."""

import sys
from pathlib import Path

from grupo.catalogue.fidelity import fidelity_page
from grupo.catalogue.pages import method_pages

docs = Path(sys.argv[1])
(docs / "methods").mkdir(parents=True, exist_ok=True)
for name, text in method_pages().items():
    (docs / "methods" / name).write_text(text, encoding="utf-8")
(docs / "fidelity.md").write_text(fidelity_page(), encoding="utf-8")
