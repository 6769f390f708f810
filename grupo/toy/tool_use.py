"""Questions that a tool answers, and a novice who half knows how to put it to use."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from random import Random

from grupo.core.component import component
from grupo.core.rng import derive_key, make_rng
from grupo.core.types import Observation, Task
from grupo.envs import GameEnv, MultiTurn, RewardTerm, StepResult
from grupo.envs.tools import Toolbox
from grupo.envs.tools.tool_calls import CLOSE_TAG, OPEN_TAG, Tool, ToolCallError, parse_calls
from grupo.rewards import AfterMarker, ExactMatch
from grupo.toy.multi_turn_lm import ToyMultiTurnLM

UNCLOSED_CALL_ERROR = f"error: malformed: a call ends with {CLOSE_TAG}"


@component
class ToolTaskFamily:
    """What `tool` can be asked: a word of each of `choices`, a condition first, numbers last.

    `answers` are all that are asked for. `ask` makes a question of words; `write` the program that
    goes into the tool's `argument_name`, without the condition where that word is empty; `find` says
    what a program comes to, and `told` what the tool says that comes to an answer.
    """

    tool_name: str
    argument_name: str
    word_choices: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]
    make_question: Callable[..., str]
    make_program: Callable[..., str]
    run_program: Callable[[str], str]
    format_result: Callable[[str], str]

    def tool_call(self, words: Sequence[str]) -> str:
        """The call that answers the question."""
        call = {
            "name": self.tool_name,
            "arguments": {self.argument_name: self.make_program(*words)},
        }
        return f"{OPEN_TAG}{json.dumps(call)}{CLOSE_TAG}"

    def make_task(self, words: Sequence[str]) -> Task | None:
        """The question; None unless its condition matters and its answer is one of the answers."""
        answer, careless = (
            self.run_program(self.make_program(*w)) for w in (words, ("", *words[1:]))
        )
        fine = answer in self.answers and answer != careless
        columns = {"words": tuple(words)}
        return (
            Task(" ".join(words), self.make_question(*words), answer, columns=columns)
            if fine
            else None
        )

    def word_combinations(self) -> Iterator[tuple[str, ...]]:
        """All there are of the words that are no numbers."""
        return product(*(some for some in self.word_choices if not some[0].isdigit()))

    def vocabulary_texts(self) -> tuple[str, ...]:
        """What holds every word that is needed."""
        first = [some[0] for some in self.word_choices]
        whole = [(*words, *first[len(words) :]) for words in self.word_combinations()]
        said = {
            text for words in whole for text in (self.make_question(*words), self.tool_call(words))
        }
        return (*sorted(said), *map(self.format_result, self.answers), UNCLOSED_CALL_ERROR)


@component
class ToolTasks:
    """Up to `each` questions of every combination of words: of those `held_out`, or of the others.

    One combination in four is held out.
    """

    family: ToolTaskFamily
    held_out: bool
    tasks_per_combination: int

    def load(self) -> Sequence[Task]:
        some = (
            words
            for words in self.family.word_combinations()
            if _is_held_out(words) == self.held_out
        )
        return [
            task
            for words in some
            for task in islice(self._tasks(words), self.tasks_per_combination)
        ]

    def _tasks(self, words: Sequence[str], max_tries: int = 50) -> Iterator[Task]:
        rng, numbers = make_rng(0, "errand", *words), self.family.word_choices[len(words) :]
        drawn = ((*words, *map(rng.choice, numbers)) for _ in range(max_tries))
        return filter(None, map(self.family.make_task, dict.fromkeys(drawn)))


def _is_held_out(words: Sequence[str]) -> bool:
    return derive_key(0, "held out", *words) % 4 == 0


@component
class NoisyDemonstrator:
    """Says what somebody says who half knows how: every number is a chance.

    It `calls` the tool, or guesses at once; `condition_prob` the condition, or leaves it out; `reads` each
    word, or takes any; `close_prob` its call, or forgets to; `use_result_prob` what it hears, or guesses.
    """

    family: ToolTaskFamily
    call_prob: float = 0.8
    condition_prob: float = 0.5
    word_prob: float = 0.9
    close_prob: float = 0.95
    use_result_prob: float = 0.85

    def __call__(self, task: Task, observations: Sequence[Observation], rng: Random) -> str:
        if len(observations) == 1:
            return self._first_turn(task.columns["words"], rng)
        return self._answer_turn(_observation_text(observations[-1]), rng)

    def _first_turn(self, words: Sequence[str], rng: Random) -> str:
        if rng.random() >= self.call_prob:
            return rng.choice(self.family.answers)
        pairs = zip(words, self.family.word_choices, strict=True)
        said = [word if rng.random() < self.word_prob else rng.choice(some) for word, some in pairs]
        call = self.family.tool_call(
            (said[0] if rng.random() < self.condition_prob else "", *said[1:])
        )
        return call if rng.random() < self.close_prob else call.removesuffix(CLOSE_TAG)

    def _answer_turn(self, observation: str, rng: Random) -> str:
        heeded = rng.random() < self.use_result_prob and not observation.startswith("error")
        return observation.splitlines()[-1] if heeded else rng.choice(self.family.answers)


def _observation_text(observation: Observation) -> str:
    return observation if isinstance(observation, str) else str(observation[-1]["content"])


@component
class MockTools:
    """Where calls get any answer: who shows how a tool is used need not run it.

    As nobody can know these answers, who is shown has to read them.
    """

    family: ToolTaskFamily
    toolbox: Toolbox

    def __call__(self) -> "MockToolEnv":
        return MockToolEnv(self.family, self.toolbox())


class MockToolEnv:
    """A session in which no tool is run."""

    def __init__(self, family: ToolTaskFamily, game_env: GameEnv) -> None:
        self.family, self.game_env, self.task_key = family, game_env, ""

    def reset(self, task: Task) -> Observation | StepResult:
        """What the tools' own session says first."""
        self.task_key = task.key
        return self.game_env.reset(task)

    def step(self, text: str) -> StepResult:
        """An answer to every call, or what is wrong with it."""
        rng = make_rng(0, self.task_key, text)
        said = [self._answer(call, rng.choice(self.family.answers)) for call in parse_calls(text)]
        return StepResult("\n".join(said), done=not said)

    def _answer(self, call: object, answer: str) -> str:
        return (
            f"error: {call}"
            if isinstance(call, ToolCallError)
            else self.family.format_result(answer)
        )


def tool_env(tool: Tool) -> MultiTurn:
    """A world in which `tool` may be called twice, and the right answer after a call is paid."""
    right = RewardTerm("correct", ExactMatch(AfterMarker(CLOSE_TAG)))
    return MultiTurn(Toolbox((tool,), max_result_chars=60), (right,), max_turns=3, role="tool")


def tool_use_model(
    name: str, family: ToolTaskFamily, tool: Tool, tasks_per_combination: int
) -> ToyMultiTurnLM:
    """A model to be, whom a novice shows how it asks `tool` what is not held out."""
    toolbox = Toolbox((tool,))
    told = str(toolbox().reset(Task("", "")))  # what there is to be called: one token
    return ToyMultiTurnLM(
        name,
        MultiTurn(MockTools(family, toolbox), max_turns=3, role="tool"),
        ToolTasks(family, held_out=False, tasks_per_combination=tasks_per_combination),
        NoisyDemonstrator(family),
        family.vocabulary_texts(),
        (told,),
    )


def best_constant_accuracy(tasks: Sequence[Task]) -> float:
    """How many of the tasks who never reads a question gets right at best: by always one answer."""
    (_, most), *_ = Counter(task.reference_answer for task in tasks).most_common(1)
    return most / len(tasks)
