"""Answers that a program of the system reads: a compiler, a solver, a prover."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from grupo.core.component import component
from grupo.core.extract_answer import AfterThinking, Extractor, LastBlock
from grupo.core.protocols import implemented_in
from grupo.core.ranges import FiniteSeconds, NonEmptyString
from grupo.core.types import Task
from grupo.envs.code_tests import InputCase, share_met, stripped_lines, task_cases
from grupo.envs.program_reward import ProgramReward
from grupo.envs.tools.program_sandbox import ProgramRun, ProgramSandbox, check_file_name
from grupo.rewards.base import RewardValue
from grupo.util.errors import ConfigError

SOURCE, EXECUTABLE = "main.c", "program"
# a program with undefined behaviour, such as a signed overflow, ends with an error
GCC = ProgramSandbox(
    (
        *("gcc", "-std=c11", "-O1", "-Wall", "-fsanitize=undefined", "-fno-sanitize-recover"),
        *("-o", EXECUTABLE, SOURCE, "-lm"),
    ),
    outputs=(EXECUTABLE,),
    package="the package gcc",
)


@implemented_in("grupo.envs")
class ProgramScore(Protocol):
    """Scores what a program has left behind, outside of the sandbox."""

    def __call__(self, task: Task, run: ProgramRun, /) -> RewardValue:
        """The score of an answer.

        Args:
            task: The task, with the columns of its row.
            run: The program's exit code, text and output files, all of which may be anything.
        """
        ...


def ended_without_error(task: Task, run: ProgramRun) -> float:
    """1 if the program ended by itself with the exit code 0, otherwise 0."""
    return float(run.exit_code == 0)


@component
class ProgramCheck(ProgramReward):
    """The score of a program of the system that reads the answer: a solver's or a prover's result.

    The program runs in the sandbox, and `score` outside of it, so that an answer can change neither
    `score` nor the columns of the task that `score` reads. A program that is stopped at a limit of
    the sandbox has no exit code.

    Args:
        sandbox: The program; its command names the input files.
        file: Name of the input file that holds the answer.
        score: From the task and the program's run to a score, at most 1.
        columns: Columns of the task that the program reads, each from a file with the column's
            name. An answer can read them, too.
        extract: Finds the answer in the rollout's text; by default its last fenced block.
    """

    sandbox: ProgramSandbox
    file: NonEmptyString
    score: ProgramScore = ended_without_error
    columns: tuple[NonEmptyString, ...] = ()
    extract: Extractor = AfterThinking(LastBlock())  # pyrefly: ignore[bad-override]

    def __post_init__(self) -> None:
        for name in (self.file, *self.columns):
            check_file_name("ProgramCheck", name)

    def score_program(self, task: Task, program: str) -> RewardValue:
        files = {name: str(task.columns[name]) for name in self.columns}
        return self.score(task, self.sandbox.run({**files, self.file: program}))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` if the program is missing, or a task lacks a column."""
        self.sandbox.check()
        for task in tasks:
            if missing := [name for name in self.columns if name not in task.columns]:
                raise ConfigError(
                    f"tasks: {task.location or task.key} has no column {missing[0]!r}, which the"
                    " program reads. Allowed: rows with this column; or columns=()."
                )


@component
class CompiledTests(ProgramReward):
    """The share of a task's tests that the compiled program passes, from 0 to 1.

    The column has {"inputs": […], "outputs": […]}. The compiler and each test are runs of their own
    in the sandbox. A run has one input and no expected output, which is compared outside of the
    sandbox. A test fails if the program ends with an error, as it does at undefined behaviour. The
    reward term `name/compiles` is 1 if there is an executable file.

    Args:
        compiler: Reads `main.c` and writes the file `program`, which is executed.
        column: Column of the tests, or its JSON text.
        time_limit: Wall-clock seconds of a test.
        extract: Finds the source in the rollout's text; by default its last block of C.
    """

    compiler: ProgramSandbox = GCC
    column: NonEmptyString = "tests"
    time_limit: FiniteSeconds = 5.0
    extract: Extractor = AfterThinking(LastBlock(("c",)))  # pyrefly: ignore[bad-override]

    def __post_init__(self) -> None:
        if self.compiler.outputs != (EXECUTABLE,):
            raise ConfigError(
                f"CompiledTests.compiler: its outputs are {self.compiler.outputs}. Allowed:"
                f" ({EXECUTABLE!r},)."
            )

    def score_program(self, task: Task, program: str) -> Mapping[str, float]:
        build = self.compiler.run({SOURCE: program})
        executable = build.outputs.get(EXECUTABLE)
        if build.exit_code != 0 or executable is None:
            return {"score": 0.0, "compiles": 0.0}
        test = ProgramSandbox(
            (f"./{EXECUTABLE}",), time_limit=self.time_limit, backend=self.compiler.backend
        )
        passed = list[bool]()
        for case in self._cases(task):
            run = test.run({EXECUTABLE: executable}, case.data)
            is_equal = stripped_lines(run.printed) == stripped_lines(case.output)
            passed.append(run.exit_code == 0 and is_equal)
        return {"score": share_met(passed), "compiles": 1.0}

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` if there is no compiler, or a task has tests of another form."""
        self.compiler.check()
        for task in tasks:
            self._cases(task)

    def _cases(self, task: Task) -> Sequence[InputCase]:
        cases = [case for case in task_cases(task, self.column) if isinstance(case, InputCase)]
        if not cases:
            raise ConfigError(
                f"tasks: {task.location or task.key}, column {self.column!r} has assertions."
                ' Allowed for compiled programs: {"inputs": […], "outputs": […]}.'
            )
        return cases
