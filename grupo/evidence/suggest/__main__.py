"""Write `evidence.json` in this package from the data in docs/.

python -m grupo.evidence.suggest docs
"""

import json
import sys
from pathlib import Path

from grupo.evidence.suggest.collect_evidence import collect_evidence
from grupo.evidence.suggest.evidence import FILE

if __name__ == "__main__":
    records = collect_evidence(Path(sys.argv[1]))
    text = json.dumps(records, indent=1, ensure_ascii=False) + "\n"
    (Path(__file__).parent / FILE).write_text(text, encoding="utf-8")
