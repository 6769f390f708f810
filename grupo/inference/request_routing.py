"""Which server answers which request: those of one prompt share a server and its prefix cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAX_IMBALANCE = 2  # of the tokens under way at the busiest server and at the least busy one

Tokens = tuple[int, ...]


@dataclass
class PromptHomes:
    """The server of each prompt, which also gets the later turns that begin with the prompt.

    Args:
        server_of: the number of the server by prompt.

    >>> homes = PromptHomes()
    >>> homes.assign({0: (1, 2), 1: (3,), 2: (1, 2)}, {0: 10, 1: 10, 2: 10}, {0: 0, 1: 0})
    {0: 0, 1: 1, 2: 0}
    >>> homes.assign({5: (3, 4)}, {5: 10}, {0: 0, 1: 0})
    {5: 1}
    """

    server_of: dict[Tokens, int] = field(default_factory=dict)

    def assign(
        self, prompts: Mapping[int, Tokens], costs: Mapping[int, int], loads: Mapping[int, int]
    ) -> dict[int, int]:
        """The number of the server of each request, by the number of the request.

        Requests that begin with one prompt go to the server of that prompt. If a server then has
        more than `MAX_IMBALANCE` times the tokens of another, some of its requests are moved.

        Args:
            prompts: of the requests.
            costs: the most tokens of each request, with its prompt.
            loads: tokens under way at each server that may be asked; it has at least one.
        """
        after = dict(loads)
        by_prompt: dict[Tokens, list[int]] = {}
        prompt_of: dict[Tokens, Tokens] = {}
        lengths = sorted({len(prompt) for prompt in self.server_of}, reverse=True)
        for i, tokens in prompts.items():
            if tokens not in prompt_of:
                prompt_of[tokens] = self._known_prompt(tokens, lengths)
            by_prompt.setdefault(prompt_of[tokens], []).append(i)
        total = {prompt: sum(costs[i] for i in group) for prompt, group in by_prompt.items()}
        assigned: dict[int, int] = {}
        for prompt in sorted(by_prompt, key=lambda prompt: -total[prompt]):
            server = self.server_of.get(prompt, -1)
            if server not in after:
                server = min(after, key=lambda s: (after[s], s))
                self.server_of[prompt] = server
            after[server] += total[prompt]
            assigned |= dict.fromkeys(by_prompt[prompt], server)
        _balance(assigned, costs, after)
        return {i: assigned[i] for i in prompts}

    def clear(self) -> None:
        """Forget all prompts: with new weights no server has a prefix."""
        self.server_of.clear()

    def _known_prompt(self, tokens: Tokens, lengths: Sequence[int]) -> Tokens:
        """The longest known prompt that the tokens begin with, or the tokens themselves."""
        beginnings = (tokens[:length] for length in lengths if length <= len(tokens))
        return next((prompt for prompt in beginnings if prompt in self.server_of), tokens)


def _balance(assigned: dict[int, int], costs: Mapping[int, int], loads: dict[int, int]) -> None:
    """Move requests from the busiest server to the least busy one, while that evens them out."""
    movable: dict[int, list[int]] = {server: [] for server in loads}
    for i, server in assigned.items():
        movable[server].append(i)
    while True:
        idlest = min(loads, key=lambda s: (loads[s], s))
        busiest = max(movable, key=lambda s: (bool(movable[s]), loads[s], -s))
        if not movable[busiest] or loads[busiest] <= MAX_IMBALANCE * loads[idlest]:
            return
        i = _last_that_fits(movable[busiest], costs, loads[busiest] - loads[idlest])
        if i < 0:
            return
        movable[busiest].remove(i)
        movable[idlest].append(i)
        loads[busiest] -= costs[i]
        loads[idlest] += costs[i]
        assigned[i] = idlest


def _last_that_fits(requests: Sequence[int], costs: Mapping[int, int], limit: int) -> int:
    """The last request that costs less than the limit; -1 if there is none."""
    return next((i for i in reversed(requests) if costs[i] < limit), -1)
