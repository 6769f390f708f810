"""CUDA graphs: work on the GPU that is captured once and launched as a whole later."""

import logging
from collections.abc import Callable, Hashable
from typing import Any

import torch

logger = logging.getLogger(__name__)

Work = Callable[[], None]
Capture = Callable[[Work], Work]  # from work to its replay; the work is not done yet


class CUDACapture:
    """Captures work on a GPU as CUDA graphs, which share memory for intermediate results.

    Args:
        device: the GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream: Any = None
        self.pool: Any = None

    def __call__(self, work: Work) -> Work:
        with torch.cuda.device(self.device):
            if self.stream is None:
                self.stream = torch.cuda.Stream(self.device)
                self.pool = torch.cuda.graph_pool_handle()
            graph = torch.cuda.CUDAGraph()
            # thread_local: another thread may update the policy meanwhile, and allocate memory
            options: Any = {"stream": self.stream, "capture_error_mode": "thread_local"}
            with torch.cuda.graph(graph, pool=self.pool, **options):
                work()
        return graph.replay


class CaptureSwitch:
    """Captures work until that fails once; all engines of a model share one switch.

    Args:
        capture: captures work.
    """

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.failure = ""

    def __call__(self, work: Work) -> Work | None:
        """The replay of captured work; None if it cannot be captured."""
        if self.failure:
            return None
        try:
            return self.capture(work)
        # a lack of memory, or an operation that a capture does not support
        except RuntimeError as error:
            first_line = next(iter(str(error).strip().splitlines()), "")
            self.failure = f"{type(error).__name__}: {first_line}"
            logger.warning("Decode steps are not captured, generation is slower: %s", self.failure)
            return None


class CapturedWork:
    """Does work that differs by a key only: first as it is, then captured, later replayed.

    The first time is the warm-up that a capture needs: libraries allocate their memory.

    Args:
        capture: captures work. Default: nothing is captured.
    """

    def __init__(self, capture: CaptureSwitch | None) -> None:
        self.capture = capture
        self.forget()

    def forget(self) -> None:
        """Removes all captured work, whose memory is not valid any more."""
        self.replays: dict[Hashable, Work] = {}
        self.warmed_up: set[Hashable] = set()

    def __call__(self, key: Hashable, work: Work) -> None:
        is_new = key not in self.replays and key in self.warmed_up
        if is_new and self.capture and (replay := self.capture(work)):
            self.replays[key] = replay
        self.warmed_up.add(key)
        self.replays.get(key, work)()
