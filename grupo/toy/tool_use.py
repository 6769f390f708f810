"""Toy tasks that need a tool, and a toy model fine-tuned on noisy demonstrations of its use."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from random import Random

from grupo.core.component import component
from grupo.core.types import Observation, Task
from grupo.envs import GameEnv, MultiTurn, RewardTerm, StepResult
from grupo.envs.tools import Toolbox
from grupo.envs.tools.formats import ToolCall
from grupo.envs.tools.formats.hermes import CLOSE_TAG, OPEN_TAG, parse_hermes
from grupo.envs.tools.tool_calls import Tool
from grupo.rewards import AfterMarker, ExactMatch
from grupo.toy.multi_turn_lm import ToyMultiTurnLM
from grupo.util.rng import derive_key, make_rng

UNCLOSED_CALL_ERROR = f"error: malformed: a call ends with {CLOSE_TAG}"


@component
class ToolTaskFamily:
    """A family of questions for a tool, built from combinations of words.

    Args:
        tool_name: Name of the tool in calls.
        argument_name: Name of the tool's argument, which is a program.
        word_choices: The choices for each word: a condition first, numbers last.
        answers: All answers that a task may have.
        make_question: Makes the question of the words.
        make_program: Makes the program of the words; an empty condition leaves the condition out.
        run_program: Returns the answer of a program.
        format_result: The tool's output for an answer.
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
        """The call that answers the question of these words."""
        arguments = {self.argument_name: self.make_program(*words)}
        call = {"name": self.tool_name, "arguments": arguments}
        return f"{OPEN_TAG}{json.dumps(call)}{CLOSE_TAG}"

    def make_task(self, words: Sequence[str]) -> Task | None:
        """The task of these words, or None.

        A task's answer must be one of `answers`, and another one without the condition.
        """
        answer = self.run_program(self.make_program(*words))
        unconditional_answer = self.run_program(self.make_program("", *words[1:]))
        if answer not in self.answers or answer == unconditional_answer:
            return None
        question = self.make_question(*words)
        return Task(" ".join(words), question, answer, columns={"words": tuple(words)})

    def word_combinations(self) -> Iterator[tuple[str, ...]]:
        """All combinations of the words that are no numbers."""
        return product(*(choices for choices in self.word_choices if not choices[0].isdigit()))

    def vocabulary_texts(self) -> tuple[str, ...]:
        """Texts that contain every word of questions, calls and results."""
        first_words = [choices[0] for choices in self.word_choices]
        texts = set[str]()
        for combination in self.word_combinations():
            words = (*combination, *first_words[len(combination) :])
            texts |= {self.make_question(*words), self.tool_call(words)}
        return (*sorted(texts), *map(self.format_result, self.answers), UNCLOSED_CALL_ERROR)


@component
class ToolTasks:
    """Tasks of a family, split by combinations of words: one combination in four is held out.

    Args:
        family: The family.
        held_out: Take the held-out combinations rather than the others.
        tasks_per_combination: Most tasks of a combination, which differ in their numbers.
    """

    family: ToolTaskFamily
    held_out: bool
    tasks_per_combination: int

    def load(self) -> Sequence[Task]:
        tasks: list[Task] = []
        for words in self.family.word_combinations():
            if _is_held_out(words) == self.held_out:
                tasks += islice(self._tasks(words), self.tasks_per_combination)
        return tasks

    def _tasks(self, words: Sequence[str], max_tries: int = 50) -> Iterator[Task]:
        rng = make_rng(0, "errand", *words)
        numbers = self.family.word_choices[len(words) :]
        candidates = ((*words, *map(rng.choice, numbers)) for _ in range(max_tries))
        return filter(None, map(self.family.make_task, dict.fromkeys(candidates)))


def _is_held_out(words: Sequence[str]) -> bool:
    return derive_key(0, "held out", *words) % 4 == 0


@component
class NoisyDemonstrator:
    """A demonstrator that uses the tool correctly with these probabilities.

    Args:
        family: The family of the tasks.
        call_prob: Calls the tool, rather than guessing an answer at once.
        condition_prob: Includes the condition in the program.
        word_prob: Takes a word from the question, rather than a random one; for each word.
        close_prob: Writes the closing tag of the call.
        use_result_prob: Answers with the tool's result, rather than guessing.
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
        noisy_words = [
            word if rng.random() < self.word_prob else rng.choice(choices)
            for word, choices in zip(words, self.family.word_choices, strict=True)
        ]
        condition = noisy_words[0] if rng.random() < self.condition_prob else ""
        call = self.family.tool_call((condition, *noisy_words[1:]))
        return call if rng.random() < self.close_prob else call.removesuffix(CLOSE_TAG)

    def _answer_turn(self, observation: str, rng: Random) -> str:
        uses_result = rng.random() < self.use_result_prob
        if uses_result and not observation.startswith("error"):
            return observation.splitlines()[-1]
        return rng.choice(self.family.answers)


def _observation_text(observation: Observation) -> str:
    return observation if isinstance(observation, str) else str(observation[-1]["content"])


@component
class MockTools:
    """Environment factory for demonstrations, in which calls get random answers.

    Tools are not run. A model cannot predict the answers, so it learns to read them.

    Args:
        family: Provides the answers and their format.
        toolbox: Describes the tools in the first observation.
    """

    family: ToolTaskFamily
    toolbox: Toolbox

    def __call__(self) -> "MockToolEnv":
        return MockToolEnv(self.family, self.toolbox())


class MockToolEnv:
    """A session in which no tool is run."""

    def __init__(self, family: ToolTaskFamily, game_env: GameEnv) -> None:
        self.family = family
        self.game_env = game_env
        self.task_key = ""

    def reset(self, task: Task) -> Observation | StepResult:
        """The first observation of the toolbox."""
        self.task_key = task.key
        return self.game_env.reset(task)

    def step(self, text: str) -> StepResult:
        """A random result for every call, or its error; the session is done without a call."""
        rng = make_rng(0, self.task_key, text)
        results = [
            self._format_result(call, rng.choice(self.family.answers))
            for call in parse_hermes(text)
        ]
        return StepResult("\n".join(results), done=not results)

    def _format_result(self, call: ToolCall, answer: str) -> str:
        if call.error:
            return f"error: malformed: {call.error}"
        return self.family.format_result(answer)


def tool_env(tool: Tool) -> MultiTurn:
    """An environment with one tool, in which the answer after the calls is rewarded."""
    correct = RewardTerm("correct", ExactMatch(AfterMarker(CLOSE_TAG)))
    return MultiTurn(Toolbox((tool,), max_result_chars=60), (correct,), max_turns=3, role="tool")


def tool_use_model(
    name: str, family: ToolTaskFamily, tool: Tool, tasks_per_combination: int
) -> ToyMultiTurnLM:
    """A toy model, fine-tuned on noisy demonstrations of the tasks that are not held out.

    Args:
        name: First part of the folder's name.
        family: The family of the tasks.
        tool: The tool that the prompt describes; it is not run.
        tasks_per_combination: Most tasks of a combination of words.
    """
    toolbox = Toolbox((tool,))
    tools_prompt = str(toolbox().reset(Task("", "")))  # one token
    return ToyMultiTurnLM(
        name,
        MultiTurn(MockTools(family, toolbox), max_turns=3, role="tool"),
        ToolTasks(family, held_out=False, tasks_per_combination=tasks_per_combination),
        NoisyDemonstrator(family),
        family.vocabulary_texts(),
        (tools_prompt,),
    )


def best_constant_accuracy(tasks: Sequence[Task]) -> float:
    """The largest accuracy of a constant answer: the frequency of the most frequent one."""
    (_, count), *_ = Counter(task.reference_answer for task in tasks).most_common(1)
    return count / len(tasks)
