"""Training of toy flow models from scratch, by flow matching."""

import random
import shutil
from pathlib import Path
from typing import Protocol, runtime_checkable
from uuid import uuid4

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.models.flow_matching.unet import SmallFlow
from grupo.training.callbacks import Callback, NullCallback
from grupo.util.rng import make_rng, seed_torch


@runtime_checkable
class ToyFlow(Protocol):
    """The specification of a toy flow model: the untrained model, its data and its training.

    `caption_dropout` is the probability that a caption is dropped, for classifier-free guidance;
    `ema_rate` the rate of the exponential moving average, which provides the trained weights.
    """

    @property
    def batch_size(self) -> int: ...

    @property
    def max_steps(self) -> int: ...

    @property
    def learning_rate(self) -> float: ...

    @property
    def caption_dropout(self) -> float: ...

    @property
    def ema_rate(self) -> float: ...

    @property
    def seed(self) -> int: ...

    @property
    def model_dir(self) -> Path: ...

    def build_model(self) -> SmallFlow: ...

    def example(self, rng: random.Random) -> tuple[str, Float[Tensor, "3 S S"]]:
        """A caption and an image of it, with pixels from -1 to 1."""
        ...


def ensure_trained_flow(flow: ToyFlow, callback: Callback = NullCallback()) -> Path:
    """The folder of the trained model; trains it first if it does not exist."""
    if not (flow.model_dir / "config.json").is_file():
        tmp = flow.model_dir.with_name(f"tmp.{uuid4().hex[:8]}")
        train_flow(flow, callback).save_pretrained(tmp)
        shutil.rmtree(flow.model_dir, ignore_errors=True)
        tmp.rename(flow.model_dir)
    return flow.model_dir


def train_flow(flow: ToyFlow, callback: Callback = NullCallback()) -> SmallFlow:
    """Train a model by flow matching. Lipman et al., 2023, arXiv:2210.02747."""
    seed_torch(flow.seed, "grow")
    rng = make_rng(flow.seed, "drawings")
    model = flow.build_model()
    ema_params = {name: x.detach().clone() for name, x in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), flow.learning_rate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, flow.learning_rate, flow.max_steps, pct_start=0.05
    )
    for step in range(flow.max_steps):
        loss = _loss(model, [_training_pair(flow, rng) for _ in range(flow.batch_size)])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        _update_ema(ema_params, model, max(flow.ema_rate, 1 / (step + 1)))
        if step % 50 == 0:
            callback.on_message(f"step {step + 1} of {flow.max_steps}: loss {loss.item():.3f}")
    model.load_state_dict(ema_params, strict=False)
    return model


def _training_pair(flow: ToyFlow, rng: random.Random) -> tuple[str, Tensor]:
    caption, image = flow.example(rng)
    return "" if rng.random() < flow.caption_dropout else caption, image


def _loss(model: SmallFlow, pairs: list[tuple[str, Tensor]]) -> Tensor:
    """Mean squared error of the velocity at random times, most of them near the noise."""
    tokens = torch.tensor([model.tokenize(caption) for caption, _ in pairs])
    image = torch.stack([image for _, image in pairs])
    noise = torch.randn_like(image)
    t = (1 + 1.2 * torch.randn(len(image))).sigmoid()
    x_t = torch.lerp(image, noise, t[:, None, None, None])
    return (model(x_t, t, tokens) - (noise - image)).square().mean()


@torch.no_grad()
def _update_ema(ema_params: dict[str, Tensor], model: SmallFlow, rate: float) -> None:
    for name, x in model.named_parameters():
        ema_params[name].lerp_(x, rate)
