"""Tagged demonstrations: columns of a task become tags, which are shown or must be inferred."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.message_content import has_text_or_parts, prepend_to
from grupo.core.numbers import Fraction
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Group, Observation, Task
from grupo.rollouts.samplers.demonstrations import SolutionColumn, demonstration_rollout


def tag_text(name: str, value: object) -> str:
    """The tag of a column.

    >>> tag_text("quality", 5)
    '<quality=5>'
    """
    return f"<{name}={value}>"


def add_tags(task: Task, tags: Mapping[str, Any]) -> Task:
    """The task with tags before its prompt. In a chat, they precede the user's first message.

    Args:
        task: The task.
        tags: The value of each tag, by its name.

    >>> add_tags(Task("k", "Sum 2, 3"), {"length": "short", "quality": 5}).prompt
    '<length=short><quality=5>Sum 2, 3'
    """
    text = "".join(tag_text(name, value) for name, value in tags.items())
    return replace(task, prompt=_prepend_text(task.prompt, text)) if text else task


@component
class TaggedDemonstrations:
    """A group of worked solutions with tags, which are made of columns of the task.

    Tags are dropped from the prompt at random. The tags that are not dropped stand before the
    prompt and are not trained on. With probability `infer_prob`, the dropped tags stand before the
    solution and are trained on, so that the policy learns to infer them. If a prompt has no tags,
    the trained policy generates the tags and then the solution. `without_tags` removes the tags
    from the answer. All rewards are 1.

    Treasure Hunt, D'souza et al. (arXiv:2506.14702).

    Args:
        columns: Columns that become tags. A task without a column lacks its tag.
        drop_all: Probability that all tags are dropped (our choice).
        drop_each: Probability with which a single tag is dropped, if not all are (our choice).
        infer_prob: Probability that the dropped tags are trained on.
        solution: Column of the solution.
    """

    columns: tuple[str, ...] = ("quality",)
    drop_all: Fraction = 0.5
    drop_each: Fraction = 0.5
    infer_prob: Fraction = 1.0
    solution: str = "solution"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(*self.columns, self.solution))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollouts = []
        for i, text in enumerate(SolutionColumn(self.solution)(task)):
            shown, inferred = self.split_tags(task, actor.rng("tags", i))
            answer = "".join(tag_text(*tag) for tag in inferred.items()) + text
            tagged_task = add_tags(task, shown)
            rollout = await demonstration_rollout(tagged_task, env, actor, answer, "demonstration")
            rollouts.append(replace(rollout, reward=1.0))
        return Group(task, tuple(rollouts))

    def split_tags(self, task: Task, rng: Random) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The tags of a task that its prompt shows, and the tags that the policy learns to infer.

        Args:
            task: The task.
            rng: Draws the dropped tags.
        """
        tags = {name: task.columns[name] for name in self.columns if name in task.columns}
        drops_all = rng.random() < self.drop_all
        # drawn also if all are dropped: the number of draws must not depend on the first one
        is_dropped = {name: rng.random() < self.drop_each or drops_all for name in tags}
        must_infer = rng.random() < self.infer_prob
        shown = {name: tag for name, tag in tags.items() if not is_dropped[name]}
        dropped = {name: tag for name, tag in tags.items() if is_dropped[name]}
        return shown, dropped if must_infer else {}


def without_tags(text: str, columns: Sequence[str]) -> str:
    """An answer without the tags at its beginning.

    Args:
        text: The answer.
        columns: Columns of the tags.

    >>> without_tags("<quality=5>It is <b=1>.", ["quality"])
    'It is <b=1>.'
    """
    while (end := text.find(">")) >= 0 and any(text.startswith(f"<{name}=") for name in columns):
        text = text[end + 1 :]
    return text


def _prepend_text(prompt: Observation, text: str) -> Observation:
    if isinstance(prompt, str):
        return text + prompt
    messages = list(prompt)
    for i, message in enumerate(messages):
        if message.get("role") == "user" and has_text_or_parts(message):
            messages[i] = {**message, "content": prepend_to(text, message["content"])}
            return tuple(messages)
    return ({"role": "user", "content": text}, *messages)


PAPER = Paper(
    title="Treasure Hunt: Real-time Targeting of the Long Tail using Training-Time Markers",
    use="Answers have properties that a user may want to choose, some of them rare.",
    tags=("sft",),
    kind="sampler",
    catalogue=("treasure-hunt",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2506.14702, abstract and introduction; the catalogue's row"),
    missing=("The taxonomy of 90 markers, and the model that labels the data with them.",),
    deviations=(
        "Rates of 0.5 for the whole set and for each tag are our choice.",
        "The text of a tag, <name=value>, is our choice.",
    ),
    shown=(
        "tests/rollouts/samplers/test_tagged_training.py"
        "::test_a_tag_selects_the_rare_class_and_without_tags_it_stays_rare",
    ),
)
