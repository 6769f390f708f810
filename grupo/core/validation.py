"""Checks of lengths against the context length of a model."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from grupo.core.demonstration import Demonstration
from grupo.core.media import media_of
from grupo.core.template_options import shortest_prompt, split_options
from grupo.core.types import Observation, Rollout, Task
from grupo.util.errors import ConfigError
from grupo.util.loader_errors import loader_errors

CHARACTERS_PER_TOKEN = 8  # in the part of a long text that is tokenized; most texts have 3 to 5
TOKEN_MARGIN = 16  # tokens that the end of a part may add


def check_context_room(max_new_tokens: int, context_length: int) -> None:
    """Raise `ConfigError` if answers of `max_new_tokens` leave no room for a prompt."""
    if max_new_tokens >= context_length:
        allowed = f"below {context_length}, the context length of the model"
        raise ConfigError(f"max_new_tokens: {max_new_tokens}. Allowed: {allowed}.")


def no_rollout(demonstration: Demonstration) -> Rollout:
    """A rollout without turns: of a policy that measures no demonstrations."""
    return Rollout()


@dataclass(frozen=True)
class PromptLimit:
    """The largest prompt of a policy, in tokens.

    Args:
        encode: Tokens of an observation of a rollout.
        context_length: Tokens of prompt and answer together.
        max_new_tokens: Tokens of an answer.
        demonstrate: The rollout of a demonstration.
    """

    encode: Callable[[Rollout, Observation], Sequence[int]]
    context_length: int
    max_new_tokens: int
    demonstrate: Callable[[Demonstration], Rollout] = field(default=no_rollout, repr=False)

    problem = "prompts leave no room for an answer"
    remedy = "Lower policy.max_new_tokens, or choose"

    @property
    def room(self) -> int:
        """Tokens that are left for a prompt."""
        return max(self.context_length - self.max_new_tokens, 0)

    @property
    def allowed(self) -> str:
        """The allowed lengths, for error messages."""
        return (
            f"{self.room} tokens, which is the context length of {self.context_length} less"
            f" policy.max_new_tokens, {self.max_new_tokens}"
        )

    def describe_excess(self, task: Task) -> str:
        """The length of a prompt that is too long, in words; "" if it fits.

        The beginning of a long text is tokenized first, so that a text of 10 MB takes milliseconds.
        """
        text = "".join(message_texts(task.prompt))
        size = CHARACTERS_PER_TOKEN * self.room
        while 0 < size < len(text):
            if self._count(text[:size]) > self.room + TOKEN_MARGIN:
                return f"more than {self.room} tokens, {len(text):,} characters"
            size *= CHARACTERS_PER_TOKEN
        is_located = any(media_of(task.prompt))
        with loader_errors(f"prompt: {describe_task(task)}"), _located(task, is_located):
            length = self._count(task.prompt)
        return f"{length} tokens" if length > self.room else ""

    def prompt_tokens(self, task: Task) -> int:
        """Number of tokens of a task's prompt."""
        return self._count(task.prompt)

    def surely_fits(self, task: Task) -> bool:
        """True if the prompt's bytes, its template's tokens and 64 a message are at most `room`.

        A text has at most one token for each byte. The result is False for a prompt with images,
        videos or audio, whose tokens only the policy can count.
        """
        texts = message_texts(task.prompt)
        if any(media_of(task.prompt)):
            return False
        size = sum(len(text.encode(errors="replace")) + 64 for text in texts)
        return size + self.template_tokens(task) <= self.room

    def template_tokens(self, task: Task) -> int:
        """Tokens of the shortest prompt with a task's options: a template may add a long text."""
        chat = () if isinstance(task.prompt, str) else task.prompt
        _, tools, kwargs = split_options(chat)
        key = repr((bool(chat), tools, kwargs))
        if key not in self._counts:
            with _located(task, bool(kwargs)):
                self._counts[key] = self._count(shortest_prompt(task.prompt))
        return self._counts[key]

    @cached_property
    def _counts(self) -> dict[str, int]:
        """Numbers of tokens of the shortest prompts, by their options."""
        return {}

    def truncate(self, task: Task) -> Task:
        """The task with its text, or its longest message, cut at the beginning until it fits.

        Raises:
            ConfigError: The other messages alone are too long.
        """
        text = max(message_texts(task.prompt), key=len, default="")
        kept = min(len(text), CHARACTERS_PER_TOKEN * self.room)
        while kept > 0:
            prompt = _replace_longest(task.prompt, text, text[-kept:])
            length = self._count(prompt)
            if length <= self.room:
                return replace(task, prompt=prompt)
            kept = min(kept - (length - self.room), kept * self.room // length)
        raise ConfigError(
            f"prompt: {describe_task(task)} is too long without its longest message."
            f" Allowed: {self.allowed}."
        )

    def validate_tasks(self, tasks: Iterable[Task]) -> None:
        """Raise `ConfigError` for the first prompt that leaves no room for an answer."""
        for task in tasks:
            if excess := self.describe_excess(task):
                raise ConfigError(
                    f"prompt: {describe_task(task)} has {excess}. Allowed: {self.allowed}."
                )

    def _count(self, prompt: Observation) -> int:
        return len(self.encode(Rollout(), prompt))


@dataclass(frozen=True)
class DemonstrationLimit:
    """The largest demonstration of a policy, in tokens.

    Args:
        prompts: The policy's limit of prompts, whose context length is that of a demonstration.
        read: The demonstrations of a task.
    """

    prompts: PromptLimit
    read: Callable[[Task], Sequence[Demonstration]]

    problem = "demonstrations are longer than the context"
    remedy = "Choose"

    @property
    def allowed(self) -> str:
        """The allowed lengths, for error messages."""
        length = self.prompts.context_length
        return f"{length} tokens of prompt and answers, the context length of the model"

    def surely_fits(self, task: Task) -> bool:
        """True if the bytes of all texts, plus 64 for each message, are at most the context length.

        The result is False with images, videos or audio, whose tokens only the policy can count.
        """
        size = 0
        for demonstration in self.read(task):
            size += len(str(demonstration.tools).encode(errors="replace"))
            for observation, answer in demonstration.turns:
                if any(media_of(observation)):
                    return False
                parts = (observation,) if isinstance(observation, str) else observation
                size += sum(len(str(x).encode(errors="replace")) + 64 for x in (*parts, answer))
        return size <= self.prompts.context_length

    def describe_excess(self, task: Task) -> str:
        """The length of a demonstration that is too long, in words; "" if it fits."""
        with loader_errors(f"demonstration: {describe_task(task)}"):
            length = self._count(task)
        return f"{length} tokens" if length > self.prompts.context_length else ""

    def truncate(self, task: Task) -> Task:
        """The task with a prompt that is shortened from the beginning until all answers fit.

        Raises:
            ConfigError: The answers alone are too long, or there is no prompt.
        """
        prompt = len(self.prompts.encode(Rollout(), task.prompt)) if task.prompt else 0
        answers = self._count(task) - prompt
        limit = replace(self.prompts, max_new_tokens=answers)
        if not prompt or not limit.room:
            raise ConfigError(
                f"overlong: truncate shortens prompts, and the answers of {describe_task(task)} are"
                f" too long without it. Allowed: {self.allowed}. Choose --overlong drop."
            )
        return limit.truncate(task)

    def validate_tasks(self, tasks: Iterable[Task]) -> None:
        """Raise `ConfigError` for the first demonstration that is too long."""
        for task in tasks:
            if not self.surely_fits(task) and (excess := self.describe_excess(task)):
                raise ConfigError(
                    f"demonstration: {describe_task(task)} has {excess}. Allowed: {self.allowed}."
                )

    def _count(self, task: Task) -> int:
        rollouts = (self.prompts.demonstrate(x) for x in self.read(task))
        contexts = (context for rollout in rollouts for context in rollout.contexts)
        return max((context.context_length for context in contexts), default=0)


def describe_task(task: Task) -> str:
    """File and line of a task, or else its key, and the beginning of its prompt."""
    place = task.location or f"task {task.key}"
    return f"{place}, {str(task.prompt)[:60]!r},"


@contextmanager
def _located(task: Task, is_needed: bool) -> Generator[None]:
    """Add the place of a task to an error about its own images, videos, audio or arguments."""
    try:
        yield
    except ConfigError as error:
        if not is_needed:
            raise
        raise ConfigError(f"{error} The prompt is that of {describe_task(task)[:-1]}.") from error


def message_texts(prompt: Observation) -> list[str]:
    """The texts of a prompt's messages and of their parts; other contents are left out."""
    contents: list[Any] = [prompt] if isinstance(prompt, str) else [m["content"] for m in prompt]
    return [text for content in contents for text in _texts(content)]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list | tuple) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return [text for text in texts if isinstance(text, str)]


def _replace_longest(prompt: Observation, longest: str, text: str) -> Observation:
    """The prompt with `text` in place of the first message whose text is `longest`."""
    if isinstance(prompt, str):
        return text
    index = next(i for i, m in enumerate(prompt) if longest in _texts(m["content"]))
    content = _replace_text(prompt[index]["content"], longest, text)
    return (*prompt[:index], {**prompt[index], "content": content}, *prompt[index + 1 :])


def _replace_text(content: Any, old: str, new: str) -> Any:
    """The content with another text in place of the first one that is `old`."""
    if isinstance(content, str):
        return new
    place = next(i for i, part in enumerate(content) if part.get("text") == old)
    return [*content[:place], {**content[place], "text": new}, *content[place + 1 :]]
