"""Write the pages of all methods and docs/fidelity.md: `python -m grupo.catalogue docs`."""

import argparse
from pathlib import Path

from grupo.catalogue.fidelity import fidelity_page
from grupo.catalogue.pages import method_pages

parser = argparse.ArgumentParser("python -m grupo.catalogue", description=__doc__)
parser.add_argument("docs", type=Path, help="the folder that receives the pages")
docs = parser.parse_args().docs
(docs / "methods").mkdir(parents=True, exist_ok=True)
for name, text in method_pages().items():
    (docs / "methods" / name).write_text(text, encoding="utf-8")
(docs / "fidelity.md").write_text(fidelity_page(), encoding="utf-8")
