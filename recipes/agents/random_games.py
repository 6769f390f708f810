"""Demonstrations of tic-tac-toe: random free squares."""

from collections.abc import Sequence

from grupo import Task
from grupo.core.component import component
from grupo.toy.tokenizers import END_TOKEN
from grupo.util.rng import make_rng

SQUARES = "012345678"


@component
class RandomGames:
    """Tasks to continue a game of random moves: the answer is the player's next move.

    Args:
        count: Number of games.
        seed: Seed of the games.
    """

    count: int
    seed: int

    def load(self) -> Sequence[Task]:
        """The tasks; a prompt contains the player's boards and moves so far."""
        return [self._game(i) for i in range(self.count)]

    def _game(self, index: int) -> Task:
        rng = make_rng(self.seed, "blind", index)
        board, order, seat = list(SQUARES), rng.sample(SQUARES, 9), rng.randrange(2)
        text, num_moves = "", rng.randrange(4) * 2 + seat
        for move, square in enumerate(order[:num_moves]):
            is_own = move % 2 == seat
            if is_own:
                text += f"{''.join(board)}\n{square}{END_TOKEN}"
            board[int(square)] = "X" if is_own else "O"
        return Task(f"{self.seed} {index}", f"{text}{''.join(board)}\n", order[num_moves])
