"""One program for all tasks: the prompt begins with a text that says how they are solved."""

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
    """A turn whose prompt begins with the program of a file, which the policy carries out.

    A program is any text that says how all tasks of a kind are solved: pseudo-code, rules, an
    instruction. A `ProgramStage` searches one, and people may write one. Forms that begin with
    {program} share what the engine has read of it.

    Args:
        file: A file with the program, such as "runs/search/rules/program.txt".
        form: Prompt with {program} and {task}.
        inner: Answers the prompt.

    Raises:
        ConfigError: The form lacks a placeholder, or has one without a value. By `check`: the file
            is missing, is no text, is empty, is no regular file, or is too large.
    """

    file: NonEmptyString
    form: str = FORM
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        check_form("WithProgram.form", self.form, PLACEHOLDERS)

    def check(self) -> None:
        """Raises `ConfigError` if the file is missing, or is none with a short text."""
        self.given()

    def given(self) -> "GivenProgram":
        """The same strategy with the text of the file, without white space around it."""
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
        return GivenProgram(program, self.form, self.inner)

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        return await self.given()(actor, rollout, observation)


@dataclass(frozen=True)
class GivenProgram:
    """`WithProgram` with the text of a program in place of its file.

    Args:
        program: The program.
        form: Prompt with {program} and {task}.
        inner: Answers the prompt.
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
