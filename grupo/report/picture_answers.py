"""Answers to questions on pictures: a table of accuracy by kind, and the pictures with answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from grupo.core.media import Image, media_of
from grupo.core.types import Group, Observation, Task
from grupo.envs import SingleTurn
from grupo.rollouts.eval_result import bootstrap_proportion
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.util.boxes import BoundingBox, find_boxes
from grupo.util.optional_deps import optional_dependency

SAMPLING_KEY = 7  # the key of the random numbers, which all policies share
MAX_SHOWN = 16  # tasks in a grid
COLUMNS = 4  # of a grid
PICTURE_SIZE = 160  # pixels along a picture in a grid
MARGIN = 100  # pixels beside a picture, for its text
LINE_HEIGHT = 13  # pixels of a line of text
INK = "black"
COLOURS = ("#d55e00", "#0072b2", "#b0508a", "#9a6a00")  # of policies whose answers have boxes
REFERENCE_COLOUR = "#009e73"


def compare_answers(
    policies: Mapping[str, HasActor],
    env: SingleTurn,
    tasks: Sequence[Task],
    blind_tasks: Sequence[Task],
    folder: Path,
    attempts: int = 4,
) -> str:
    """Write `table.md` and `answers.png`; return the table.

    Args:
        policies: Policies by the name of their column.
        env: The environment that scores answers.
        tasks: Tasks with a picture each, their kind in `columns["kind"]`.
        blind_tasks: The same tasks with noise in place of the pictures, for a column each.
        folder: Where to write.
        attempts: Sampled answers per task.
    """
    groups = dict[str, Sequence[Group]]()
    for name, policy in policies.items():
        actor = policy.actor(SAMPLING_KEY)
        groups[name] = run_rollouts(actor, env, tasks, attempts)
        groups[f"{name}, blind"] = run_rollouts(actor, env, blind_tasks, attempts)
    table = accuracy_table(groups)
    (folder / "table.md").write_text(table)
    shown = {name: groups[name][:MAX_SHOWN] for name in policies}
    save_answer_grid(shown, folder / "answers.png")
    return table


def accuracy_table(groups: Mapping[str, Sequence[Group]]) -> str:
    """A Markdown table of sampled accuracy by kind of question: means over tasks, 95 % intervals.

    Args:
        groups: Groups of the same tasks by the name of their column.
    """
    lines = [f"| | {' | '.join(groups)} |", "|---" * (len(groups) + 1) + "|"]
    first = next(iter(groups.values()))
    kinds = dict.fromkeys(group.task.columns["kind"] for group in first)
    for kind in ("", *kinds):
        cells = [str(bootstrap_proportion(_accuracies(column, kind))) for column in groups.values()]
        lines.append(f"| {kind or 'all'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _accuracies(groups: Sequence[Group], kind: str) -> list[float]:
    """Mean rewards of the groups of a kind of question; "" takes all."""
    return [fmean(g.rewards) for g in groups if kind in ("", g.task.columns["kind"])]


def save_answer_grid(groups: Mapping[str, Sequence[Group]], file: Path) -> None:
    """Write a PNG of the pictures, each with its question and the first answers of all policies.

    Args:
        groups: Groups of the same tasks by the name of their policy.
        file: Where to write.
    """
    with optional_dependency("Pillow", "images"):
        from PIL import Image as PillowImage

    columns = list(zip(*groups.values(), strict=True))
    width, height = PICTURE_SIZE + MARGIN, PICTURE_SIZE + LINE_HEIGHT * (len(groups) + 2)
    rows = -(-len(columns) // COLUMNS)
    grid = PillowImage.new("RGB", (width * COLUMNS, height * rows), "white")
    for i, same_task in enumerate(columns):
        row, column = divmod(i, COLUMNS)
        cell = _cell(same_task[0].task, _lines(groups, same_task))
        grid.paste(cell, (column * width, row * height))
    grid.save(file, optimize=True)


class _Line(NamedTuple):
    """A line of text below a picture, and the boxes of the same colour on the picture."""

    text: str
    colour: str = INK
    boxes: Sequence[BoundingBox] = ()


def _lines(names: Iterable[str], same_task: Sequence[Group]) -> Iterator[_Line]:
    """The question, and the first answer of each policy; policies with boxes have colours."""
    task = same_task[0].task
    truth = find_boxes(str(task.reference_answer))
    yield _Line(question_of(task.prompt), REFERENCE_COLOUR if truth else INK, truth)
    for i, (name, group) in enumerate(zip(names, same_task, strict=True)):
        first = group.rollouts[0]
        boxes = find_boxes(first.text)
        mark = f"{first.reward:.2f}" if truth else ("wrong", "right")[first.reward == 1.0]
        colour = COLOURS[i % len(COLOURS)] if boxes else INK
        yield _Line(f"{name}: {first.text} ({mark})", colour, boxes)


def question_of(prompt: Observation) -> str:
    """The text of a prompt, without its pictures.

    >>> question_of(({"role": "user", "content": [{"type": "text", "text": "What is it?"}]},))
    'What is it?'
    """
    if isinstance(prompt, str):
        return prompt
    parts = [part for message in prompt for part in message["content"]]
    return " ".join(part["text"] for part in parts if part["type"] == "text")


def _cell(task: Task, lines: Iterable[_Line]) -> Any:
    """A picture with boxes, and lines of text below it."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    lines = list(lines)
    size = (PICTURE_SIZE + MARGIN, PICTURE_SIZE + LINE_HEIGHT * (len(lines) + 1))
    cell = PillowImage.new("RGB", size, "white")
    image = next(x for x in media_of(task.prompt) if isinstance(x, Image))
    picture = PillowImage.fromarray(image.pixels())
    large = picture.resize((PICTURE_SIZE, PICTURE_SIZE), PillowImage.Resampling.NEAREST)
    scale = [PICTURE_SIZE / side for side in picture.size] * 2
    on_picture = ImageDraw.Draw(large)
    draw = ImageDraw.Draw(cell)
    for i, line in enumerate(lines):
        for box in line.boxes:
            place = [side * factor for side, factor in zip(box, scale, strict=True)]
            on_picture.rectangle(place, outline=line.colour, width=2)
        draw.text((2, PICTURE_SIZE + LINE_HEIGHT * i), line.text, fill=line.colour)
    cell.paste(large)
    return cell
