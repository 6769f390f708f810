"""Toy models of `hidden_rules.py` that read requests in words, in grupo's default wording.

The beginner carries out every rule, and takes each word for a wrong one: a fifth of its rules have
the right direction, none has the right amount. It has learned requests about any rule: to explain
a given result, to write a hint of a level from a solution, to follow a hint, and to revise an
answer towards criteria. The teacher knows the rules, judges the student's answer that it reads,
and continues a wrong one with the solution.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from grupo.core.types import Task
from grupo.evidence.claims.tiny_lm import demonstration_recipe, trained
from grupo.rollouts.samplers import TeacherFeedback
from grupo.rollouts.samplers.explanations import EXPLAIN
from grupo.rollouts.samplers.leveled_hints import LeveledHintPrompt
from grupo.rollouts.samplers.refinement import REFINE
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.importing import load_module_file

WORLD = load_module_file(Path(__file__).with_name("hidden_rules.py"))
RIGHT_DIRECTION = 0.2  # of the beginner's rules
RIGHT, WRONG = "; right", "; wrong , "  # how feedback begins
HINT_TAGS = ("<hint>", "</hint>")
ARCHITECTURE = LlamaArchitecture(context_length=160, initializer_range=0.08)
LESSONS_PER_STEP = 64
Rule = tuple[str, str]


def explanation(task: Task, rule: Rule) -> Task:
    """The request to explain what a rule makes of a task's digit, with the explanation."""
    request = EXPLAIN.format(answer=WORLD.counted(rule, task.columns["digit"]))
    return _lesson(f"{task.prompt}{request}", WORLD.answer(rule, task.columns["digit"]))


def hint(task: Task, rule: Rule, level: int) -> Task:
    """The request for a hint from a solution, with the hint."""
    solution = WORLD.answer(rule, task.columns["digit"])
    request = LeveledHintPrompt()(Task("", task.prompt, columns={"solution": solution}), level)
    opened, closed = HINT_TAGS
    return _lesson(str(request), f"{opened}{WORLD.hint(rule, level)}{closed}")


def hinted(task: Task, rule: Rule, level: int, rng: random.Random) -> Task:
    """A task with a hint, with an answer that follows it and is otherwise the beginner's."""
    direction, amount = rule
    alike = [x for x in WORLD.AMOUNTS if WORLD.parity(x) == WORLD.parity(amount)]
    _, own = beginners_rule(task, rng)
    chosen = (own, rng.choice(alike), amount)[level - 1]
    text = WORLD.answer((direction, chosen), task.columns["digit"])
    return _lesson(f"{task.prompt}\n\n{WORLD.hint(rule, level)}", text)


def revision(task: Task, rule: Rule, draft_rule: Rule) -> Task:
    """The request to revise a draft towards the criteria of a rule that it fails."""
    draft = WORLD.answer(draft_rule, task.columns["digit"])
    all_criteria = WORLD.criteria(rule, task.columns["digit"])
    lacking = [x for x in all_criteria if not WORLD.is_met(x, draft)]
    request = REFINE.format(answer=draft, items="\n".join(lacking))
    return _lesson(f"{task.prompt}{request}", WORLD.answer(rule, task.columns["digit"]))


def feedback(task: Task, students_rule: Rule) -> Task:
    """The request to continue a student's answer, with the teacher's text."""
    student = WORLD.answer(students_rule, task.columns["digit"])
    request = TeacherFeedback().request.replace("{answer}", student)
    is_right = students_rule == WORLD.rule_of(task.columns["word"])
    return _lesson(
        f"{task.prompt}{request}", RIGHT if is_right else f"{WRONG}{task.columns['solution']}"
    )


def beginners_rule(task: Task, rng: random.Random) -> Rule:
    """A rule as the beginner takes the word of a task: never with the right amount."""
    direction, amount = WORLD.rule_of(task.columns["word"])
    (other,) = {*WORLD.DIRECTIONS} - {direction}
    chosen = direction if rng.random() < RIGHT_DIRECTION else other
    return chosen, rng.choice([x for x in WORLD.AMOUNTS if x != amount])


def beginners_lesson(number: int) -> Task:
    """A prompt with the text that the beginner learns to write; half have no request."""
    task, rng = _drawn(f"beginner {number}")
    rule, other, level = rng.choice(WORLD.RULES), rng.choice(WORLD.RULES), rng.choice(WORLD.LEVELS)
    match number % 8:
        case 0:
            return explanation(task, rule)
        case 1:
            return hint(task, rule, level)
        case 2:
            return hinted(task, rule, level, rng)
        case 3:
            return revision(task, rule, other) if rule != other else explanation(task, rule)
        case _:
            text = WORLD.answer(beginners_rule(task, rng), task.columns["digit"])
            return _lesson(str(task.prompt), text)


def teachers_lesson(number: int) -> Task:
    """A student's answer, right in half of the lessons or more, with the teacher's feedback."""
    task, rng = _drawn(f"teacher {number}")
    right = WORLD.rule_of(task.columns["word"])
    return feedback(task, right if number % 2 else rng.choice(WORLD.RULES))


LESSONS = {"beginner": beginners_lesson, "teacher": teachers_lesson}
STEPS = {"beginner": 600, "teacher": 200}


def model(folder: Path, name: str) -> str:
    """The folder of the beginner or the teacher, which is trained if it is missing."""
    own = folder / name
    if not (own / "model").is_dir():
        save_model(own, LESSONS[name], STEPS[name])
    return str(own / "model")


def save_model(folder: Path, lessons: Callable[[int], Task], steps: int) -> None:
    """Train a model on lessons, and save it in the folder `model`.

    Args:
        folder: Receives the model.
        lessons: Returns the lesson of a number.
        steps: Steps of 64 lessons.
    """
    tasks = [lessons(number) for number in range(LESSONS_PER_STEP * min(steps, 400))]
    ARCHITECTURE.save_untrained(folder / "start", word_tokenizer(_texts(), HINT_TAGS))
    recipe = demonstration_recipe(
        folder / "start",
        tasks,
        lambda task: [str(task.reference_answer)],
        steps=steps,
        tasks_per_step=LESSONS_PER_STEP,
    )
    trained(recipe).policy.export(folder / "model")


def _drawn(name: str) -> tuple[Task, random.Random]:
    """A random task, and the random stream that drew it."""
    rng = random.Random(name)
    return WORLD.rule_task(rng.choice(WORLD.WORDS), rng.randrange(10)), rng


def _lesson(prompt: str, text: str) -> Task:
    return Task(f"{prompt} -> {text}", prompt, text)


def _texts() -> Iterator[str]:
    """Texts with all words, so that beginner and teacher have one tokenizer."""
    for lessons in LESSONS.values():
        tasks = (lessons(number) for number in range(1200))
        yield from (text for x in tasks for text in (str(x.prompt), str(x.reference_answer)))
    yield from (WORLD.rule_task(word, 0).columns["lecture"] for word in WORLD.WORDS)
