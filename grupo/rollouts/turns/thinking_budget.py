"""So much to think, so much to answer."""

from grupo.core.component import piece
from grupo.core.interfaces import Act
from grupo.core.types import Observation, Rollout


@piece
class Budgeted:
    """A turn of at most `think` tokens until it says `close`, and of `solve` tokens after that.

    Where thinking does not come to its end, `close` is forced. An answer that ends while it thinks
    is over.
    """

    think: int = 1024
    solve: int = 1024
    close: str = "</think>"

    async def __call__(self, act: Act, rollout: Rollout, seen: Observation) -> Rollout:
        thought = await act.until(self.close, limit=self.think)(rollout, seen)
        said = rollout.then(seen, thought)
        if thought.stopped == "end":
            return said
        if thought.stopped == "length":
            said = said.then("", await act.force(said, "", self.close))
        return said.then("", await act.until(limit=self.solve)(said, ""))
