"""An inference engine without a model, which counts every token that it draws."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any

from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.server_sharing import ServerSharing
from grupo.util.rng import make_rng

LETTERS = "abcdefg"


class DrawingEngine:
    """Draws letters one by one and counts them; also the policy's connection to its weights.

    Args:
        policy: a `CausalPolicy`, which generates with this engine from now on.
        stop_letter: one letter in eight; "" draws answers of full length.
    """

    def __init__(self, policy: Any, stop_letter: str = "") -> None:
        self.tokenizer = policy.chat_tokenizer
        self.stop_conditions: StopConditions = policy.stop_conditions
        self.stop_letter = stop_letter
        self.num_drawn = 0
        policy.weight_sync = self

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        for index, request in enumerate(requests):
            if request.num_scored:
                yield (
                    index,
                    Reply((), (-1.0,) * request.num_scored, "", (0.5,) * request.num_scored),
                )
            else:
                yield index, self._answer(request)

    def _answer(self, request: Request) -> Reply:
        rng = make_rng(request.rng_key, len(request.tokens))
        text = ""
        while len(text) < self.stop_conditions.remaining_tokens(request):
            text += self._draw(rng)
            if any(text.endswith(stop) for stop in request.stop_strings):
                return self._reply(text, "stop")
        return self._reply(text, "length")

    def _draw(self, rng: Random) -> str:
        self.num_drawn += 1
        stops = bool(self.stop_letter) and rng.random() < 1 / 8
        return self.stop_letter if stops else rng.choice(LETTERS)

    def _reply(self, text: str, finish_reason: str) -> Reply:
        return Reply(self.tokenizer.encode_forced(text), (-1.0,) * len(text), finish_reason)

    def engine(self) -> "DrawingEngine":
        return self

    def snapshot(self) -> Mapping[str, object]:
        return {}

    def load(self, weights: Mapping[str, object]) -> None:
        pass

    def context(self) -> AbstractContextManager[None]:
        return nullcontext()

    def share_servers(self, sharing: ServerSharing) -> None:
        pass

    def release_memory(self) -> None:
        pass

    def close(self) -> None:
        pass
