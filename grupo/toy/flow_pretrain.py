"""Small flow models taught on the spot: the velocity from noise to images of a world."""

import random
import shutil
from pathlib import Path
from typing import Protocol, runtime_checkable
from uuid import uuid4

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.rng import generator, seed_torch
from grupo.models.flow_matching.unet import SmallFlow
from grupo.training.callbacks import Silent, Watcher


@runtime_checkable
class Taught(Protocol):
    """A model that can be born, what it is taught, and how.

    `blank` is the share of images without their caption, for guidance; the weights that are kept
    are a mean of the last ones, an exponential one at the rate `follow`.
    """

    @property
    def batch(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def lr(self) -> float: ...

    @property
    def blank(self) -> float: ...

    @property
    def follow(self) -> float: ...

    @property
    def seed(self) -> int: ...

    @property
    def home(self) -> Path: ...

    def born(self) -> SmallFlow: ...

    def example(self, rng: random.Random) -> tuple[str, Float[Tensor, "3 S S"]]:
        """A caption and one of its images, -1 to 1."""
        ...


def ensure(flow: Taught, watcher: Watcher = Silent()) -> Path:
    """The folder of the grown model; grown now if nobody did before."""
    if not (flow.home / "config.json").is_file():
        place = flow.home.with_name(f"tmp.{uuid4().hex[:8]}")
        grow(flow, watcher).save_pretrained(place)
        shutil.rmtree(flow.home, ignore_errors=True)
        place.rename(flow.home)
    return flow.home


def grow(flow: Taught, watcher: Watcher = Silent()) -> SmallFlow:
    """Teach a model the velocity from noise to images. Lipman et al., 2023, arXiv:2210.02747."""
    seed_torch(flow.seed, "grow")
    rng, model = generator(flow.seed, "drawings"), flow.born()
    kept = {name: x.detach().clone() for name, x in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), flow.lr)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, flow.lr, flow.steps, pct_start=0.05)
    for step in range(flow.steps):
        loss = _loss(model, [_told(flow, rng) for _ in range(flow.batch)])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.step()
        _follow(kept, model, max(flow.follow, 1 / (step + 1)))
        if step % 50 == 0:
            watcher.said(f"step {step} of {flow.steps}: loss {loss.item():.3f}")
    model.load_state_dict(kept, strict=False)
    return model


def _told(flow: Taught, rng: random.Random) -> tuple[str, Tensor]:
    caption, image = flow.example(rng)
    return "" if rng.random() < flow.blank else caption, image


def _loss(model: SmallFlow, told: list[tuple[str, Tensor]]) -> Tensor:
    """Mean square of what is wrong with the velocities at random times, mostly near noise."""
    word = torch.tensor([model.words(caption) for caption, _ in told])
    image = torch.stack([image for _, image in told])
    noise, t = torch.randn_like(image), (1 + 1.2 * torch.randn(len(image))).sigmoid()
    at = torch.lerp(image, noise, t[:, None, None, None])
    return (model(at, t, word) - (noise - image)).square().mean()


@torch.no_grad()
def _follow(kept: dict[str, Tensor], model: SmallFlow, rate: float) -> None:
    for name, x in model.named_parameters():
        kept[name].lerp_(x, rate)
