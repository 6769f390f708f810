"""Programs whose printed value is an artefact, such as points or a formula, scored by a function.

The program runs in the sandbox and only prints. The score is computed outside of the sandbox from
what was printed, so that a program can neither read nor change the function that scores it.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from grupo.core.component import component
from grupo.core.extract_answer import AfterThinking, Extractor
from grupo.core.protocols import implemented_in
from grupo.core.types import Task
from grupo.envs.code_tests import last_code_block
from grupo.envs.program_reward import ProgramReward
from grupo.envs.tools.sandbox import Sandbox
from grupo.util.json_text import parse_json

MAX_VALUE_CHARS = 1 << 16  # of the printed line


class NotAdmissible(ValueError):
    """The value is no artefact of the problem, such as a point outside of the square."""


@implemented_in("grupo.envs.problems")
class Problem(Protocol):
    """Scores an artefact."""

    def __call__(self, value: Any, /) -> Mapping[str, float]:
        """The number to maximise as "score", above 0, beside measures for the cells of an archive.

        Args:
            value: A value of JSON, which may be anything.

        Raises:
            NotAdmissible: The value is no artefact of the problem.
        """
        ...


@component
class PrintedValue(ProgramReward):
    """The score of the JSON value that the program prints as its last line.

    A program without such a line, and a value that is not admissible, score 0. The measures of the
    problem become the reward terms `name/measure`, where `name` is that of the reward term. A score
    of the problem that is NaN or infinite is refused: the rollout counts as not scored.

    Args:
        problem: Scores the value, in the process of the run.
        sandbox: Runs the programs.
        extract: Finds the program in the rollout's text; an answer without a program scores 0.
    """

    problem: Problem
    sandbox: Sandbox = Sandbox()
    extract: Extractor = AfterThinking(last_code_block)  # pyrefly: ignore[bad-override]

    @property
    def reward_range(self) -> None:
        return None

    def score_program(self, task: Task, program: str) -> Mapping[str, float]:
        return self.score_output(self.sandbox.run(program))

    def score_output(self, output: str) -> Mapping[str, float]:
        """The score and the measures of what a program has printed."""
        line = output.removesuffix("\n").rpartition("\n")[2]
        if len(line) > MAX_VALUE_CHARS:
            return {"score": 0.0}
        try:
            return self.problem(parse_json(line))
        except ValueError:  # no JSON, or not admissible
            return {"score": 0.0}
