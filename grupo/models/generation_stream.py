"""The CUDA stream of generation that runs in another thread than the update."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


class GenerationStream:
    """A stream of its own on a GPU, so that generation and update do not wait for one another.

    Tensors of one stream must not be used on the other before both have ended their work. That is
    where weights are copied: `wait` is called on either side. On a CPU there are no streams.

    Args:
        device: of the model that generates.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream: Any = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.wait()  # the model was copied in the stream of the update

    def __call__(self) -> AbstractContextManager[Any]:
        """Context manager whose work is done in this stream."""
        return torch.cuda.stream(self.stream) if self.stream else nullcontext()

    def wait(self) -> None:
        """Wait until the current stream has ended its work."""
        if self.stream:
            torch.cuda.current_stream(self.device).synchronize()
