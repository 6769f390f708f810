"""One program for all tasks: the prompt begins with a text that says how to solve the tasks."""

from dataclasses import dataclass

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Observation, Rollout
from grupo.rollouts.turns.private_context import answer_to_prompt, task_text, with_task_text
from grupo.util.errors import ConfigError, suggest
from grupo.util.json_text import read_limited
from grupo.util.limits import PROMPT_FILE_SIZE
from grupo.util.user_paths import parse_path

FORM = "{program}\n\n{task}"
PLACEHOLDERS = ("program", "task")


@component
class WithProgram:
    """A turn whose prompt begins with a program from a file, which the policy is to follow.

    A program is any text that says how all tasks of a kind are solved: pseudo-code, rules, or an
    instruction. It is not executed. A `ProgramStage` searches for a program, and users may write
    one. If the form begins with {program}, the engine's prefix cache serves the program to all
    tasks.

    Args:
        file: A file with the program, such as "runs/search/rules/program.txt".
        form: Prompt with {program} and {task}.
        inner: Generates the answer to the prompt.

    Raises:
        ConfigError: The form lacks a placeholder, or has one without a value. When `check` is
            called: the file is missing, empty, too large, no text or no regular file.
    """

    file: NonEmptyString
    form: str = FORM
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        check_form("WithProgram.form", self.form, PLACEHOLDERS)

    def check(self) -> None:
        """Raise `ConfigError` if the file cannot be read as a text within the size limit."""
        self.load()

    def load(self) -> "LoadedProgram":
        """Read the file, and return the strategy with its text, without white space around it."""
        path = parse_path(self.file)
        try:
            program = read_limited(path, PROMPT_FILE_SIZE).strip()
        except FileNotFoundError as error:
            siblings = sorted(file.name for file in path.parent.glob("*") if file.is_file())
            hint = suggest(path.name, siblings)
            raise ConfigError(f"WithProgram.file: There is no file {self.file}. {hint}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"WithProgram.file: {self.file!r} cannot be read: {error}."
            ) from error
        except ConfigError as error:  # a pipe, a device, or a file that is too large
            raise ConfigError(f"WithProgram.file: {error}") from error
        if not program:
            raise ConfigError(f"WithProgram.file: {self.file!r} is empty. Allowed: some text.")
        return LoadedProgram(program, self.form, self.inner)

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        return await self.load()(actor, rollout, observation)


@dataclass(frozen=True)
class LoadedProgram:
    """`WithProgram` with the text of a program in place of its file.

    Args:
        program: The program.
        form: Prompt with {program} and {task}.
        inner: Generates the answer to the prompt.
    """

    program: str
    form: str = FORM
    inner: TurnStrategy = single_response

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        prompt = self.prompt(observation)
        return await answer_to_prompt(actor, rollout, observation, prompt, self.inner)

    def prompt(self, observation: Observation) -> Observation:
        """The observation with the program in its text."""
        values = {"program": self.program, "task": task_text(observation)}
        return with_task_text(observation, fill(self.form, values))
