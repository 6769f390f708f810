"""What cannot be compared, refused before any work starts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from operator import attrgetter

from grupo.compare.experiment import HELD_OUT, METRICS, Cell, Comparison, slug
from grupo.compare.toy_models import Home
from grupo.config.validate import check as check_recipe
from grupo.config.validate import check_admitted, check_columns
from grupo.core.component import show, walk
from grupo.core.errors import Refused, nearest
from grupo.core.types import Task
from grupo.models.loading import find
from grupo.models.spec import Spec
from grupo.recipe import Recipe, Source
from grupo.tasks import split

JUDGED = ("held_out", "evaluation.solved", "evaluation.attempts")


def check(comparison: Comparison) -> None:
    """Refuse what cannot be compared."""
    _check_names("recipes", comparison.recipes)
    _check_names("task_sets", comparison.task_sets)
    _check_numbers(comparison)
    if comparison.against not in comparison.recipes:
        said = nearest(comparison.against, comparison.recipes)
        raise Refused(f"baseline: {comparison.against!r} is none of the recipes. {said}")
    if comparison.metric not in METRICS:
        said = nearest(comparison.metric, METRICS)
        raise Refused(f"metric: {comparison.metric!r} is not measured. {said}")
    for name, task_set in ((n, s) for s in comparison.sets for n in comparison.recipes):
        with _at(name):
            check_recipe(comparison.recipe(name, task_set))
    _check_distinct(comparison)
    _check_judged(comparison)


def check_there(left: Iterable[Cell], grown: Iterable[Home]) -> None:
    """Refuse models and tasks that cells to be trained need, and that are not there.

    Models that are grown beforehand need not be.
    """
    recipes = {(cell.name, cell.task_set): cell.recipe for cell in left}.values()
    specs = (part for recipe in recipes for part in walk(recipe) if isinstance(part, Spec))
    made = {str(one.home) for one in grown}
    for model in dict.fromkeys(spec.model for spec in specs if spec.model not in made):
        find(model)
    alike: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        alike.setdefault(show((recipe.tasks, recipe.held_out)), []).append(recipe)
    for some in alike.values():
        _check_tasks(some)


def _check_tasks(recipes: Sequence[Recipe]) -> None:
    """Look at tasks, once for all recipes that are trained on them."""
    one = recipes[0]
    tasks = _load("tasks", one.tasks)
    kept = one.held_out if isinstance(one.held_out, int) else _load("held_out", one.held_out)
    some, held_out = split(tasks, kept, one.seed)
    for recipe in recipes:
        check_columns(recipe.method, some)
        check_admitted(recipe.env, held_out, some)


def _load(place: str, source: Source) -> Sequence[Task]:
    with _at(place):
        return source.load()


@contextmanager
def _at(place: str) -> Iterator[None]:
    """A refusal begins with what it is of."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{place}: {str(error).removeprefix(f'{place}: ')}") from error


def _check_names(place: str, named: Mapping[str, object]) -> None:
    if place == "recipes" and not named:
        raise Refused("recipes: none are given. Allowed: one or more, by name.")
    folders: dict[str, str] = {}
    for name in named:
        folder = slug(name)
        if not folder:
            raise Refused(f"{place}: {name!r} is no name. Allowed: one with a letter or a digit.")
        if folder in folders:
            said = f"{folders[folder]!r} and {name!r} would lie in one folder, {folder!r}"
            raise Refused(f"{place}: {said}. Call one of them otherwise.")
        folders[folder] = name


def _check_numbers(comparison: Comparison) -> None:
    seeds = comparison.numbers
    if not seeds or len(set(seeds)) < len(seeds):
        said = "1 or more, no number twice"
        raise Refused(f"seeds: {show(comparison.seeds)}. Allowed: {said}.")
    if comparison.budget.count <= 0:
        raise Refused(f"budget: {comparison.budget!r}. Allowed: above 0.")


def _check_distinct(comparison: Comparison) -> None:
    """Refuse to make one and the same of recipes that differ in their updates alone."""
    held = comparison.held
    for one, other in combinations(held, 2):
        if held[one] == held[other] and comparison.recipes[one] != comparison.recipes[other]:
            said = f"{show(comparison.updates)} makes {one!r} and {other!r} the same"
            raise Refused(f"updates: {said}: they differ in their updates alone. Allowed: own.")


def _check_judged(comparison: Comparison) -> None:
    """Refuse recipes whose runs would be measured on other tasks or in another way."""
    held, against = comparison.held, comparison.against
    if comparison.metric in HELD_OUT and held[against].held_out == 0:
        said = f"{comparison.metric!r} is measured on held-out tasks, and there are none"
        raise Refused(f"metric: {said}. Hold some out, or compare by another metric.")
    for name, place in ((name, place) for name in held for place in JUDGED):
        mine, theirs = (attrgetter(place)(held[one]) for one in (name, against))
        if mine != theirs:
            said = f"{name!r} has {place} = {show(mine)}, and {against!r} {show(theirs)}"
            raise Refused(f"recipes: {said}. They have to be measured alike.")
