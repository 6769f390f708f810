"""Train all methods and write the table: `python -m grupo.testing.smoke FILE.md [METHOD...]`."""

import sys
from pathlib import Path

from rich.progress import Progress

from grupo.catalogue.entries import methods
from grupo.testing.smoke.run import SmokeResult
from grupo.testing.smoke.table import SEEDS, RunKey, complete_results, results_page, run_all

if __name__ == "__main__":
    out, *method_keys = sys.argv[1:]
    results: dict[RunKey, SmokeResult] = {}
    with Progress() as progress:
        count = len(method_keys) or len(methods())
        task = progress.add_task("runs", total=count * len(SEEDS) * 2)
        for key, result in run_all(method_keys=[*method_keys, "grpo"] if method_keys else ()):
            progress.advance(task)
            if isinstance(result, str):
                progress.console.print(f"{key[0]}, seed {key[1]}: {result}", highlight=False)
            else:
                results[key] = result
    rows = complete_results(results)
    Path(out).write_text(results_page(rows), encoding="utf-8")
    print("learns:", " ".join(sorted(row.entry.key for row in rows if row.learns_from_signal)))
    print("not:", " ".join(sorted(row.entry.key for row in rows if not row.learns_from_signal)))
