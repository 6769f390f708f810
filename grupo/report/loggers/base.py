"""From what happens in a run to a tool that draws it."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

from grupo.core.component import parts, show
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import Score

Numbers = Mapping[str, float]
LAST = "after"  # the evaluation that no step follows


def to_stderr(line: str) -> None:
    """Say a line beside the program's output."""
    print(line, file=sys.stderr)


class Sink:
    """A watcher that hands every metric on, once for each step.

    Metrics lie at the journal's step, from 0; scores of held-out tasks, `held-out/greedy` and so
    on, at the steps done before them. Whatever fails is told of in one line, and then the run goes
    on without. A tool says how it begins, takes a step's numbers, and ends.
    """

    tool = ""

    def __init__(self, folder: Path | str, say: Callable[[str], None] = to_stderr) -> None:
        self.folder, self.say = Path(folder), say
        self.done, self.first, self.broken = 0, 0, False
        self.scores: dict[str, float] = {}  # that wait for the step they belong to

    def open(self, recipe: Recipe, step: int) -> int:
        """Begin, or go on; the first step that is not there yet."""
        raise NotImplementedError

    def write(self, step: int, numbers: Numbers) -> None:
        """Take a step's numbers."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing more comes."""
        raise NotImplementedError

    def begun(self, recipe: Recipe, step: int) -> None:
        self.done = step
        self._try(lambda: setattr(self, "first", self.open(recipe, step)))

    def said(self, line: str) -> None:
        pass

    def evaluated(self, when: str, score: Score) -> None:
        shares = score.to_data()
        self.scores |= {f"held-out/{name}": shares[name] for name in shares["intervals"]}
        if when == LAST:
            self._send(self.done, {})

    def stepped(self, step: int, metrics: Numbers) -> None:
        self._send(step, metrics)
        self.done = step + 1

    def ended(self) -> None:
        self._try(self.close)

    def _send(self, step: int, metrics: Numbers) -> None:
        numbers, self.scores = {**self.scores, **metrics}, {}
        if step >= self.first:  # steps that are done again after a crash are the same
            self._try(lambda: self.write(step, numbers))

    def _try(self, work: Callable[[], None]) -> None:
        if self.broken:
            return
        try:
            work()
        except Exception as error:  # of a library, its threads and the disk: none may end a run
            self.broken = True
            why = " ".join(f"{type(error).__name__}: {error}".split())
            self.say(f"{self.tool}: writing failed and was given up; the run goes on. {why}")


class Progress:
    """By what name a tool knows a run, and how far it got: a file in the run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        known = json.loads(path.read_text()) if path.exists() else {}
        self.name: str = known.get("name", uuid4().hex[:8])
        self.next: int = known.get("next", 0)

    def reached(self, following: int) -> None:
        """Note which step is the next one."""
        self.next = following
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"name": self.name, "next": following}))
        fresh.replace(self.path)


def described(recipe: Recipe) -> dict[str, str]:
    """The recipe as tools show it: every field as the code that makes it."""
    return {name: show(value) for name, value in parts(recipe).items()}
