"""Runs of grupo with a real model, and the page of their results: docs/real_runs.md.

    python -m benchmarks.real_runs FOLDER                     all that FOLDER has no result of
    python -m benchmarks.real_runs FOLDER --only SECTION/ROW  these, and again if there is a result

FOLDER receives `real_runs.jsonl`, a line for each row of a table, and the page `real_runs.md`. The
model is fetched once: `make real-model`. VLLM_PYTHON names the interpreter of an environment with
vLLM. A row takes one to eight minutes on 2 cores, and up to 7 GB of memory and of disk.
"""

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.page import cpu_name
from benchmarks.real_runs.page import page, read_results
from benchmarks.real_runs.sections import SECTIONS

RESULTS, PAGE = "real_runs.jsonl", "real_runs.md"


def main() -> None:
    """Make the measurements and write the page."""
    rows = [(name, row) for name, section in SECTIONS.items() for row in section.measurements]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    args = parser.parse_args()
    chosen = [key for key in rows if any("/".join(key).startswith(x) for x in args.only)]
    if args.only and not chosen:
        parser.error(f"--only: {args.only}. Allowed: {', '.join(map('/'.join, rows))}.")
    args.folder.mkdir(parents=True, exist_ok=True)
    file: Path = args.folder / RESULTS
    for name, row in chosen or [key for key in rows if key not in read_results(file)]:
        print(f"{name}/{row}", flush=True)
        measure(file, name, row)
    (args.folder / PAGE).write_text(page(read_results(file)), encoding="utf-8")


def measure(file: Path, name: str, row: str) -> None:
    """Make a measurement and append its result to the file."""
    measurement = SECTIONS[name].measurements[row]
    commands = list(measurement.commands)
    others = [x for key, x in read_results(file).items() if key != (name, row)]
    same = [result for result in others if result["commands"] == commands]
    if same:  # another section shows the same run
        result = same[0]
    else:
        with tempfile.TemporaryDirectory() as folder:
            result = measurement.measure(Path(folder))
    labels = {"section": name, "row": row, "commands": commands, "processor": cpu_name()}
    line = json.dumps({**result, **labels})
    with file.open("a", encoding="utf-8") as stream:
        stream.write(f"{line}\n")


if __name__ == "__main__":
    main()
