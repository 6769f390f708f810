"""Questions that a tool answers, and a novice who half knows how to put it to use."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from random import Random

from grupo.core.component import piece
from grupo.core.rng import derive, generator
from grupo.core.types import Observation, Task
from grupo.envs import Heard, ManyTurns, Part, Session
from grupo.envs.tools import Toolbox
from grupo.envs.tools.tool_calls import CLOSE, OPEN, Mistake, Tool, calls
from grupo.rewards import After, Exact
from grupo.toy.multi_turn_lm import Apprentice

UNCLOSED = f"error: malformed: a call ends with {CLOSE}"


@piece
class Trade:
    """What `tool` can be asked: a word of each of `choices`, a condition first, numbers last.

    `answers` are all that are asked for. `ask` makes a question of words; `write` the program that
    goes into the tool's `argument`, without the condition where that word is empty; `find` says
    what a program comes to, and `told` what the tool says that comes to an answer.
    """

    tool: str
    argument: str
    choices: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]
    ask: Callable[..., str]
    write: Callable[..., str]
    find: Callable[[str], str]
    told: Callable[[str], str]

    def call(self, words: Sequence[str]) -> str:
        """The call that answers the question."""
        call = {"name": self.tool, "arguments": {self.argument: self.write(*words)}}
        return f"{OPEN}{json.dumps(call)}{CLOSE}"

    def task(self, words: Sequence[str]) -> Task | None:
        """The question; None unless its condition matters and its answer is one of the answers."""
        answer, careless = (self.find(self.write(*w)) for w in (words, ("", *words[1:])))
        fine = answer in self.answers and answer != careless
        columns = {"words": tuple(words)}
        return Task(" ".join(words), self.ask(*words), answer, columns=columns) if fine else None

    def combinations(self) -> Iterator[tuple[str, ...]]:
        """All there are of the words that are no numbers."""
        return product(*(some for some in self.choices if not some[0].isdigit()))

    def texts(self) -> tuple[str, ...]:
        """What holds every word that is needed."""
        first = [some[0] for some in self.choices]
        whole = [(*words, *first[len(words) :]) for words in self.combinations()]
        said = {text for words in whole for text in (self.ask(*words), self.call(words))}
        return (*sorted(said), *map(self.told, self.answers), UNCLOSED)


@piece
class Errands:
    """Up to `each` questions of every combination of words: of those `held_out`, or of the others.

    One combination in four is held out.
    """

    trade: Trade
    held_out: bool
    each: int

    def load(self) -> Sequence[Task]:
        some = (words for words in self.trade.combinations() if _kept(words) == self.held_out)
        return [task for words in some for task in islice(self._tasks(words), self.each)]

    def _tasks(self, words: Sequence[str], tries: int = 50) -> Iterator[Task]:
        rng, numbers = generator(0, "errand", *words), self.trade.choices[len(words) :]
        drawn = ((*words, *map(rng.choice, numbers)) for _ in range(tries))
        return filter(None, map(self.trade.task, dict.fromkeys(drawn)))


def _kept(words: Sequence[str]) -> bool:
    return derive(0, "held out", *words) % 4 == 0


@piece
class Novice:
    """Says what somebody says who half knows how: every number is a chance.

    It `calls` the tool, or guesses at once; `minds` the condition, or leaves it out; `reads` each
    word, or takes any; `closes` its call, or forgets to; `heeds` what it hears, or guesses.
    """

    trade: Trade
    calls: float = 0.8
    minds: float = 0.5
    reads: float = 0.9
    closes: float = 0.95
    heeds: float = 0.85

    def __call__(self, task: Task, heard: Sequence[Observation], rng: Random) -> str:
        if len(heard) == 1:
            return self._asked(task.columns["words"], rng)
        return self._told(_text(heard[-1]), rng)

    def _asked(self, words: Sequence[str], rng: Random) -> str:
        if rng.random() >= self.calls:
            return rng.choice(self.trade.answers)
        pairs = zip(words, self.trade.choices, strict=True)
        said = [word if rng.random() < self.reads else rng.choice(some) for word, some in pairs]
        call = self.trade.call((said[0] if rng.random() < self.minds else "", *said[1:]))
        return call if rng.random() < self.closes else call.removesuffix(CLOSE)

    def _told(self, said: str, rng: Random) -> str:
        heeded = rng.random() < self.heeds and not said.startswith("error")
        return said.splitlines()[-1] if heeded else rng.choice(self.trade.answers)


def _text(said: Observation) -> str:
    return said if isinstance(said, str) else str(said[-1]["content"])


@piece
class Rehearsed:
    """Where calls get any answer: who shows how a tool is used need not run it.

    As nobody can know these answers, who is shown has to read them.
    """

    trade: Trade
    toolbox: Toolbox

    def __call__(self) -> "Rehearsal":
        return Rehearsal(self.trade, self.toolbox())


class Rehearsal:
    """A session in which no tool is run."""

    def __init__(self, trade: Trade, session: Session) -> None:
        self.trade, self.session, self.key = trade, session, ""

    def reset(self, task: Task) -> Observation | Heard:
        """What the tools' own session says first."""
        self.key = task.key
        return self.session.reset(task)

    def step(self, text: str) -> Heard:
        """An answer to every call, or what is wrong with it."""
        rng = generator(0, self.key, text)
        said = [self._answer(call, rng.choice(self.trade.answers)) for call in calls(text)]
        return Heard("\n".join(said), over=not said)

    def _answer(self, call: object, answer: str) -> str:
        return f"error: {call}" if isinstance(call, Mistake) else self.trade.told(answer)


def asking(tool: Tool) -> ManyTurns:
    """A world in which `tool` may be called twice, and the right answer after a call is paid."""
    right = Part("correct", Exact(After(CLOSE)))
    return ManyTurns(Toolbox((tool,), longest=60), (right,), turns=3, role="tool")


def taught(name: str, trade: Trade, tool: Tool, each: int) -> Apprentice:
    """A model to be, whom a novice shows how it asks `tool` what is not held out."""
    toolbox = Toolbox((tool,))
    told = str(toolbox().reset(Task("", "")))  # what there is to be called: one token
    return Apprentice(
        name,
        ManyTurns(Rehearsed(trade, toolbox), turns=3, role="tool"),
        Errands(trade, held_out=False, each=each),
        Novice(trade),
        trade.texts(),
        (told,),
    )


def blind(tasks: Sequence[Task]) -> float:
    """How many of the tasks who never reads a question gets right at best: by always one answer."""
    (_, most), *_ = Counter(task.answer for task in tasks).most_common(1)
    return most / len(tasks)
