"""Program: what verifiers of reasoning-gym pay for uninformed answers, a line of JSON per family.

    python -m tests.helpers.verifier_probe guarded uninformed 10 50 coin_flip gcd

measures the verifiers of 2 families on 50 tasks each. A call of more than 10 s ends the program
with a traceback, as no exception could: the verifier is computing a power of integers, for example.
Verifiers are `guarded` or `unguarded`, answers `uninformed` or `freezing`: those that freeze some.
"""

import faulthandler
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from grupo.rewards import AnswerError
from grupo.rewards.reasoning_gym import load_verifier
from grupo.tasks import ReasoningGym
from grupo.tasks.reasoning_gym import create_gym_dataset
from tests.helpers.uninformed_answers import (
    FREEZING,
    Entry,
    reference_answer,
    solves,
    uninformed_answers,
)

Verify = Callable[[str, Entry], Any]
SETTINGS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "rush_hour": (("min_moves", 6), ("max_moves", 7))  # the solver needs seconds for longer ones
}
SLOW_TO_GENERATE = {"futoshiki": 0.3, "knight_swap": 0.2, "rush_hour": 0.5}  # share of the tasks


def make_entries(family: str, size: int, seed: int = 0) -> list[dict[str, Any]]:
    """Tasks of a family as reasoning-gym describes them; fewer if they take long."""
    size = max(2, round(size * SLOW_TO_GENERATE.get(family, 1.0)))
    tasks = ReasoningGym(family, size, seed, settings=SETTINGS.get(family, ())).load()
    entries = [task.columns["entry"] for task in tasks]
    return [
        entry | {"metadata": {"source_dataset": family} | entry["metadata"]} for entry in entries
    ]


def reference_scores(verify: Verify, entries: list[dict[str, Any]]) -> list[float]:
    """The score of each task's reference answer."""
    return [_score(verify, reference_answer(entry), entry) for entry in entries]


def excess(verify: Verify, entries: list[dict[str, Any]]) -> dict[str, float]:
    """Mean score of each uninformed answer minus the share of the tasks that it solves."""
    by_label: defaultdict[str, list[float]] = defaultdict(list)
    for index, entry in enumerate(entries):
        for label, answer in uninformed_answers(entries, index).items():
            by_label[label].append(_score(verify, answer, entry) - solves(answer, entry))
    return {label: sum(values) / len(entries) for label, values in by_label.items()}


def worst(excess_by_label: Mapping[str, float]) -> tuple[float, str]:
    """The largest excess and its answer's label."""
    return max((value, label) for label, value in excess_by_label.items())


def unguarded_verifier(family: str) -> Verify:
    """reasoning-gym's own verifier, whose errors earn 0."""
    return partial(_zero_if_it_raises, create_gym_dataset(family, ()).score_answer)


def _zero_if_it_raises(verify: Verify, answer: str, entry: Entry) -> float:
    try:
        return verify(answer, entry)
    except Exception:
        return 0.0


def _score(verify: Verify, answer: str, entry: Entry) -> float:
    try:
        return verify(answer, entry)
    except AnswerError:
        return 0.0


def _with_time_limit(verify: Verify, seconds: float, answer: str, entry: Entry) -> Any:
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        return verify(answer, entry)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _pay_for_freezing(verify: Verify, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"scores": [_score(verify, answer, entries[0]) for answer in FREEZING]}


def _pay_for_all(verify: Verify, entries: list[dict[str, Any]]) -> dict[str, Any]:
    value, label = worst(excess(verify, entries))
    reference = min(reference_scores(verify, entries))
    return {"reference": reference, "excess": value, "label": label}


LOADERS = {"guarded": load_verifier, "unguarded": unguarded_verifier}
MEASUREMENTS = {"uninformed": _pay_for_all, "freezing": _pay_for_freezing}


def main(loader: str, answers: str, seconds: str, size: str, *families: str) -> None:
    """Print the measurement of each family's verifier."""
    rows = sys.stdout
    sys.stdout = sys.stderr  # generators of tasks print, too
    for family in families:
        print("begins", family, flush=True)
        verify = partial(_with_time_limit, LOADERS[loader](family), float(seconds))
        row = {"family": family} | MEASUREMENTS[answers](verify, make_entries(family, int(size)))
        print(json.dumps(row), file=rows, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
