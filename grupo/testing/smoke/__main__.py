"""Try all methods, or those named, and write the table: `python -m grupo.testing.smoke FILE.md`."""

import sys
from pathlib import Path

from rich.progress import Progress

from grupo.catalogue import methods
from grupo.testing.smoke.run import SmokeResult
from grupo.testing.smoke.table import SEEDS, complete_results, results_page, run_all

if __name__ == "__main__":
    out, *only = sys.argv[1:]
    done: dict[tuple[str, int, bool], SmokeResult] = {}
    with Progress() as bar:
        count = len(only) or len(methods())
        task = bar.add_task("trials", total=count * len(SEEDS) * 2)
        for job, trial in run_all(method_keys=[*only, "grpo"] if only else ()):
            bar.advance(task)
            if isinstance(trial, str):
                bar.console.print(f"{job[0]}, seed {job[1]}: {trial}", highlight=False)
            else:
                done[job] = trial
    table = complete_results(done)
    Path(out).write_text(results_page(table), encoding="utf-8")
    print("proven:", " ".join(sorted(row.entry.key for row in table if row.learns_from_signal)))
    print("not:", " ".join(sorted(row.entry.key for row in table if not row.learns_from_signal)))
