"""Measure how long a report takes to write, and to open in a browser.

    python benchmarks/report.py --rollouts 1000 --tokens 4000

The run is synthetic: its journals have the format of the trainer, with random words, log-probs and
entropies. The page is opened three times in a headless Chromium, if one is installed
(`make browser`); the shortest time until the first view is complete is printed, and the time until
another group is shown.
"""

import argparse
import json
import random
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from grupo.core.serialization import to_data
from grupo.report.html.build import write_html_report
from grupo.toy.quickstart import RECIPE

GROUP_SIZE = 8
GROUPS_PER_STEP = 8
READY = "return performance.getEntriesByName('ready')[0].startTime / 1000"
OPENINGS = 3


def write_run(folder: Path, rollouts: int, tokens: int) -> None:
    """Write the folder of a run with so many rollouts of so many tokens.

    Every step has other tasks, and the same answers: random ones would take minutes to write.
    """
    rng = random.Random(0)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 7))) + " " for _ in range(5000)]
    answers = [_answer(rng, words, tokens, i) for i in range(GROUP_SIZE * GROUPS_PER_STEP)]
    steps = -(-rollouts // len(answers))
    folder.mkdir()
    (folder / "recipe.json").write_text(json.dumps({"recipe": to_data(RECIPE)}))
    (folder / "summary.json").write_text(json.dumps({"steps": steps, "seconds": 1.0}))
    with (
        (folder / "metrics.jsonl").open("w") as metrics,
        (folder / "rollouts.jsonl").open("w") as lines,
        (folder / "responses.jsonl").open("w") as responses,
    ):
        for step in range(1, steps + 1):
            print(json.dumps({"step": step, "reward/mean": step / steps}), file=metrics)
            for i, (fields, items) in enumerate(answers):
                group = i // GROUP_SIZE
                task = f'"task": "task {step}.{group}", "prompt": "What is {step} + {group}?"'
                print(f'{{"step": {step}, {task}, {fields}}}', file=lines)
                print(
                    f'{{"step": {step}, "group": {group}, "responses": [{items}]}}', file=responses
                )


def _answer(rng: random.Random, words: list[str], tokens: int, index: int) -> tuple[str, str]:
    """The JSON of the fields of a rollout, and that of its response."""
    items = rng.choices(words, k=tokens)
    reward = float(rng.random() < 0.5)
    rollout = {
        "reference_answer": "5",
        "text": "".join(items),
        "turns": [],
        "reward": reward,
        "reward_terms": {"correct": reward},
        "advantage": reward - 0.5,
        "length": tokens,
        "truncated": False,
        "error": "",
    }
    response = {
        "items": items,
        "finish_reason": "stop",
        "policy_version": 0,
        "logp": [round(-rng.expovariate(2), 4) for _ in items],
        "advantage": reward - 0.5,
        "ratio": [round(rng.gauss(0, 0.01), 4) for _ in items],
        "entropy": [round(rng.expovariate(2), 4) for _ in items],
        "response_id": index % GROUP_SIZE,
    }
    return json.dumps(rollout)[1:-1], json.dumps(response)


def opening_seconds(page: Path, folder: Path) -> tuple[float, float]:
    """Seconds until the first view is complete, and until another group is shown."""
    from tests.helpers.browser import browsing

    with browsing(folder) as browser:
        opened, shown = [], []
        for _ in range(OPENINGS):
            browser.open(page)
            opened.append(float(browser.js(READY)))
            before = browser.one("#group h3").text
            start = time.perf_counter()
            browser.keys("j")
            browser.wait(lambda text=before: browser.one("#group h3").text != text)
            shown.append(time.perf_counter() - start)
        return min(opened), min(shown)


def measure(rollouts: int, tokens: int) -> None:
    """Print sizes and times of the report of a synthetic run."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder / "run", rollouts, tokens)
        start = time.perf_counter()
        cpu = time.process_time()
        page = write_html_report([folder / "run"], folder / "report.html")
        seconds = time.perf_counter() - start
        cpu = time.process_time() - cpu
        journals = sum(path.stat().st_size for path in (folder / "run").glob("*.jsonl"))
        print(f"{rollouts} rollouts of {tokens} tokens: journals {journals / 1e6:.0f} MB,", end=" ")
        print(f"page {page.stat().st_size / 1e6:.0f} MB, written in {seconds:.1f} s", end=" ")
        print(f"({cpu:.1f} s of CPU time)")
        if shutil.which("chromium") and shutil.which("chromedriver"):
            opened, shown = opening_seconds(page, folder / "browser")
            print(f"opened in {opened:.2f} s, another group shown in {shown:.2f} s")


def main() -> None:
    """Measure the report of a run of the given size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rollouts", type=int, default=10_000)
    parser.add_argument("--tokens", type=int, default=4000)
    args = parser.parse_args()
    measure(args.rollouts, args.tokens)


if __name__ == "__main__":
    main()
