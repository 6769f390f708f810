"""Fact sheets: a corpus about 300 invented places, and questions that one sheet answers.

The sheet of `bako` is `bako is red with owl`; the answer to `colour of bako ? ` is `red`. A model
that was trained to read sheets, but has seen none of the corpus, answers with the sheet in its
prompt and guesses without it.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from grupo.core.component import component
from grupo.core.types import Task
from grupo.envs.tools import KeywordSearch
from grupo.evidence.claims.tiny_lm import train_tiny_lm

COLOURS = ("red", "blue", "green", "white", "black", "brown")
ANIMALS = ("owl", "fox", "hen", "bee", "ant", "cat")
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
NAMES = [
    f"{a}{b}{c}"
    for a in ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki")
    for b in ("la", "no", "pe", "ri", "su", "ta", "vo")
    for c in ("k", "m", "n", "s", "x", "z")
][:300]
CONTEXT = "{context} "


def sheet(name: str, rng: random.Random) -> dict[str, str]:
    """The facts about a place."""
    return {"name": name, "colour": rng.choice(COLOURS), "animal": rng.choice(ANIMALS)}


def sheet_text(facts: dict[str, str]) -> str:
    """A fact sheet.

    >>> sheet_text({"name": "bako", "colour": "red", "animal": "owl"})
    'bako is red with owl'
    """
    return f"{facts['name']} is {facts['colour']} with {facts['animal']}"


def question(name: str, kind: str, answer: str) -> Task:
    """The question for one fact about a place."""
    prompt = f"{kind} of {name} ? "
    return Task(prompt, prompt, answer, columns={"name": name, "kind": kind})


SHEETS = [sheet(name, random.Random(f"sheet {name}")) for name in NAMES]


def questions() -> Iterator[Task]:
    """Two questions for each sheet of the corpus."""
    for facts in SHEETS:
        for kind in ("colour", "animal"):
            yield question(facts["name"], kind, facts[kind])


def tested_questions() -> Iterator[Task]:
    """Every third question: 200 of both kinds."""
    return iter(list(questions())[::3])


def write_corpus(folder: Path) -> Path:
    """Write the corpus, a sheet on each line, and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "sheets.txt"
    file.write_text("".join(f"{sheet_text(facts)}\n" for facts in SHEETS))
    return file


@component
class Retrieved:
    """The sheet of a corpus that fits a question best, by BM25.

    Args:
        path: File of the corpus.
    """

    path: str

    def __call__(self, task: Task) -> str:
        return KeywordSearch(self.path, top_k=1)(str(task.prompt))


def reading_tasks(count: int = 600) -> list[Task]:
    """Questions about invented facts, half of them with a sheet in the prompt."""
    rng = random.Random("reading")
    found = []
    for number in range(count):
        facts = sheet(rng.choice(NAMES), rng)
        kind = rng.choice(("colour", "animal"))
        task = question(facts["name"], kind, facts[kind])
        shown = f"{sheet_text(facts)} " if number % 2 else ""
        prompt = f"{task.prompt}{shown}"
        columns = {**task.columns, "known": number % 2}
        found.append(Task(f"{number} {prompt}", prompt, facts[kind], columns=columns))
    return found


def answered(task: Task) -> list[str]:
    """The right answer after a sheet; four guesses without one."""
    rng = random.Random(task.key)
    values = COLOURS if task.columns["kind"] == "colour" else ANIMALS
    known = bool(task.columns["known"])
    answers = [str(task.reference_answer)] * 4 if known else [rng.choice(values) for _ in range(4)]
    return [f"<think>{task.columns['kind']} {x}</think><answer>{x}</answer>" for x in answers]


def save_model(folder: Path, steps: int = 400) -> Path:
    """Train a model that reads sheets, and return its folder."""
    texts = [sheet_text(facts) for facts in SHEETS]
    asked = [str(task.prompt) for task in questions()]
    return train_tiny_lm(
        folder, reading_tasks(), answered, steps=steps, texts=[*texts, *asked], tags=TAGS
    )
