"""A shop of three pages in words: a list of things, the page of one thing, and the cart.

The policy opens the wanted thing, chooses its size and buys. The reward is 1 for the wanted thing
in the wanted size, given when the policy buys; nothing else is rewarded.
"""

import random
from collections.abc import Iterator

from grupo.core.types import Observation, Task
from grupo.toy.tokenizers import END_TOKEN

COLOURS = ("red", "blue", "green", "white")
THINGS = ("cup", "hat", "bag", "lamp", "coat")
SIZES = ("small", "medium", "large")
LISTED = 3  # things on the first page
NAMES = tuple(f"{colour} {thing}" for colour in COLOURS for thing in THINGS)


class Shop:
    """One visit to the shop. The task's columns are `listed`, `thing` and `size`."""

    def reset(self, task: Task) -> Observation:
        """The first page."""
        self.task = task
        self.thing = self.size = ""
        return self.page()

    def page(self) -> str:
        """The page of the visit."""
        thing, size = self.wanted
        if self.size:
            return f"Cart: {self.thing}, {self.size}. Actions: buy; back. Wanted: {thing}, {size}\n"
        if self.thing:
            offers = f"{self.thing}. Sizes: {'; '.join(SIZES)}. Actions: choose SIZE; back."
            return f"{offers} Wanted: {size}\n"
        listed = "; ".join(self.task.columns["listed"])
        return f"Shop: {listed}. Actions: open NAME. Wanted: {thing}\n"

    def actions(self) -> list[str]:
        """The actions of the page."""
        if self.size:
            return ["buy", "back"]
        if self.thing:
            return [*(f"choose {size}" for size in SIZES), "back"]
        return [f"open {name}" for name in self.task.columns["listed"]]

    def right_action(self) -> str:
        """The action that leads to the wanted thing."""
        thing, size = self.wanted
        if self.size:
            return "buy" if (self.thing, self.size) == self.wanted else "back"
        if self.thing:
            return f"choose {size}" if self.thing == thing else "back"
        return f"open {thing}"

    @property
    def wanted(self) -> tuple[str, str]:
        """The wanted thing and its size."""
        return self.task.columns["thing"], self.task.columns["size"]

    def step(self, text: str) -> tuple[Observation, float, bool]:
        """The next page, the reward, and whether something was bought."""
        action = text.strip().lower().strip(" .'\"")
        if action not in self.actions():
            return f"No such action. {self.page()}", 0.0, False
        verb, _, value = action.partition(" ")
        if verb == "buy":
            return "", float((self.thing, self.size) == self.wanted), True
        if verb == "open":
            self.thing = value
        elif verb == "choose":
            self.size = value
        else:
            self.thing, self.size = ("" if not self.size else self.thing), ""
        return self.page(), 0.0, False


def visits(first: int, count: int) -> Iterator[Task]:
    """Tasks: a thing to buy among those that are listed."""
    for number in range(first, first + count):
        rng = random.Random(f"visit {number}")
        listed = rng.sample(NAMES, LISTED)
        columns = {"listed": listed, "thing": rng.choice(listed), "size": rng.choice(SIZES)}
        prompt = Shop().reset(Task("", "", columns=columns))
        yield Task(f"{number} {prompt}", prompt, columns=columns)


def demonstrated(visit: Task, rng: random.Random, right: float) -> Iterator[Task]:
    """The pages of a visit with the action of somebody who is right with probability `right`.

    Each is a task: its prompt has the visit so far, its reference answer is the action.
    """
    shop = Shop()
    text = str(shop.reset(visit))
    for turn in range(len(SIZES)):
        is_right = rng.random() < right
        action = shop.right_action() if is_right else rng.choice(shop.actions())
        yield Task(f"{visit.key} {turn}", text, action)
        page, _, done = shop.step(action)
        if done:
            return
        text += f"{action}{END_TOKEN}{page}"


def texts_of(visit: Task) -> Iterator[str]:
    """Every page that a visit may have, and every action."""
    shop = Shop()
    shop.reset(visit)
    for thing in ("", *visit.columns["listed"]):
        for size in ("", *SIZES) if thing else ("",):
            shop.thing, shop.size = thing, size
            yield shop.page()
            yield from shop.actions()
