"""Questions about clips in words, with thoughts that can contradict the answer.

The prompt `cat red dog blue cat green hen red | last cat ? ` lists the frames of a clip and asks
for the first or the last colour of an animal. The thoughts name its colours and end in a
conclusion, `cat red cat green so green`. In the demonstrations a conclusion is often wrong, and
half of the answers are taken from the clip and not from the conclusion, so that an answer can be
right after thoughts that lead to another one. Some thoughts go in circles, some name no frame.
"""

import random
from collections.abc import Iterator, Sequence

from grupo.core.types import Task

ANIMALS = ("cat", "dog", "hen", "fox")
COLOURS = ("red", "blue", "green", "gold", "grey", "pink")
PLACES = ("first", "last")
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
FRAME_TOKENS = tuple(f"{animal} {colour} " for animal in ANIMALS for colour in COLOURS)
SO, WAIT = " so ", " wait "
FRAMES = 4
TRAINED, HELD_OUT, SUPERVISED = 240, 100, 2000  # tasks
RIGHT_CONCLUSIONS = 0.6
FOLLOWED = 0.5  # answers that are the conclusion
RIGHT_GLANCES = 0.7  # of the other answers, which are taken from the clip
CIRCLES, SHORT, SECOND_THOUGHTS = 0.1, 0.1, 0.1  # of the thoughts


def draw_task(rng: random.Random) -> Task:
    """A clip of four frames in which one animal has two colours, and the question about it."""
    animal, *others = rng.sample(ANIMALS, 4)
    colours = rng.sample(COLOURS, 2)
    frames = [(rng.choice(others), rng.choice(COLOURS)) for _ in range(FRAMES - 2)]
    for colour, place in zip(colours, sorted(rng.sample(range(FRAMES), 2)), strict=True):
        frames.insert(place, (animal, colour))
    place = rng.choice(PLACES)
    clip = " ".join(f"{name} {colour}" for name, colour in frames)
    prompt = f"{clip} | {place} {animal} ? "
    columns = {"animal": animal, "colours": colours}
    return Task(prompt, prompt, colours[PLACES.index(place)], columns=columns)


def all_tasks() -> list[Task]:
    """Different tasks: those of RL, those that are held out, and those of supervised training."""
    rng = random.Random("clips")
    found: dict[str, Task] = {}
    while len(found) < TRAINED + HELD_OUT + SUPERVISED:
        task = draw_task(rng)
        found.setdefault(task.key, task)
    return list(found.values())


def training_tasks() -> Iterator[Task]:
    """240 tasks for RL."""
    return iter(all_tasks()[:TRAINED])


def held_out_tasks() -> Iterator[Task]:
    """100 tasks for evaluation."""
    return iter(all_tasks()[TRAINED : TRAINED + HELD_OUT])


def supervised_tasks() -> Sequence[Task]:
    """2000 other tasks, for the supervised training of the model."""
    return all_tasks()[TRAINED + HELD_OUT :]


def demonstrations(task: Task) -> list[str]:
    """Four demonstrations of a task, some with errors.

    >>> task = draw_task(random.Random(0))
    >>> task.prompt, task.reference_answer
    ('cat green fox grey fox gold cat green | first fox ? ', 'grey')
    >>> demonstrations(task)[0]
    '<think>fox grey fox gold so blue</think><answer>blue</answer>'
    """
    rng = random.Random(f"demonstrations {task.prompt}")
    return [_demonstration(task, rng) for _ in range(4)]


def _demonstration(task: Task, rng: random.Random) -> str:
    right = str(task.reference_answer)
    conclusion = right if rng.random() < RIGHT_CONCLUSIONS else _another(right, rng)
    glance = right if rng.random() < RIGHT_GLANCES else _another(right, rng)
    answer = conclusion if rng.random() < FOLLOWED else glance
    return f"<think>{_thoughts(task, conclusion, rng)}</think><answer>{answer}</answer>"


def _another(colour: str, rng: random.Random) -> str:
    return rng.choice([other for other in COLOURS if other != colour])


def _thoughts(task: Task, conclusion: str, rng: random.Random) -> str:
    seen = " ".join(f"{task.columns['animal']} {colour}" for colour in task.columns["colours"])
    kind = rng.random()
    if kind < SHORT:
        return f"so {conclusion}"
    if kind < SHORT + CIRCLES:
        return f"{seen} {seen} {seen}{SO}{conclusion}"
    if kind < SHORT + CIRCLES + SECOND_THOUGHTS:
        first = _another(conclusion, rng)
        return f"{seen}{SO}{first}{WAIT}{seen}{SO}{conclusion}"
    return f"{seen}{SO}{conclusion}"
