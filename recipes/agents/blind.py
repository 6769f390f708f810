"""What a beginner for tic-tac-toe is taught: to put its mark just anywhere."""

from collections.abc import Sequence

from grupo import Task
from grupo.core.component import component
from grupo.core.rng import make_rng
from grupo.toy.tokenizers import END_TOKEN

SQUARES = "012345678"


@component
class RandomGames:
    """Games up to one's own move, each move any free square; the answer is one more."""

    count: int
    seed: int

    def load(self) -> Sequence[Task]:
        """Prompts hold the boards that a player saw, and what it said to them."""
        return [self._game(i) for i in range(self.count)]

    def _game(self, number: int) -> Task:
        rng = make_rng(self.seed, "blind", number)
        board, order, seat = list(SQUARES), rng.sample(SQUARES, 9), rng.randrange(2)
        text, moves = "", rng.randrange(4) * 2 + seat
        for move, square in enumerate(order[:moves]):
            mine = move % 2 == seat
            text += f"{''.join(board)}\n{square}{END_TOKEN}" * mine
            board[int(square)] = "X" if mine else "O"
        return Task(f"{self.seed} {number}", f"{text}{''.join(board)}\n", order[moves])
