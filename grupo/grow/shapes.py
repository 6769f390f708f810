"""A small flow model that learns on the spot to draw coloured shapes as captions say."""

import hashlib
import json
import os
import random
import shutil
from pathlib import Path
from uuid import uuid4

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.piece import piece
from grupo.policies.flows.small import SmallFlow
from grupo.randomness import generator, seed_torch
from grupo.rewards.image import PALETTE
from grupo.spelling import to_data
from grupo.tasks.shapes import WORDS, Scene, Things, captions, scene_of
from grupo.watch import Silent, Watcher

SIZE, THING = 16, 4  # pixels along an image, and along a shape
CIRCLE = torch.tensor([[0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 0]]).bool()
SHAPE = {"square": torch.ones(THING, THING).bool(), "circle": CIRCLE}
HALVES = {  # left, top, right and bottom of where the first things and the others lie
    "": ((0, 0, SIZE, SIZE), (0, 0, SIZE, SIZE)),
    "left of": ((0, 0, 8, SIZE), (8, 0, SIZE, SIZE)),
    "right of": ((8, 0, SIZE, SIZE), (0, 0, 8, SIZE)),
    "above": ((0, 0, SIZE, 8), (0, 8, SIZE, SIZE)),
    "below": ((0, 8, SIZE, SIZE), (0, 0, SIZE, 8)),
}


@piece
class ShapesFlow:
    """A U-Net of a few hundred thousand parameters, and how it is taught to draw.

    `blank` is the share of images without their caption, for guidance; the weights that are kept
    are a mean of the last ones, an exponential one at the rate `follow`.
    """

    width: int = 32
    batch: int = 64
    steps: int = 700
    lr: float = 2e-3
    blank: float = 0.1
    follow: float = 0.01
    seed: int = 0

    @property
    def home(self) -> Path:
        """Where the grown model is kept: equal ones share it."""
        text = json.dumps(to_data(self), sort_keys=True)
        name = f"shapes-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return Path(os.environ.get("GRUPO_HOME", ".grupo")) / "models" / name


def ensure(flow: ShapesFlow, watcher: Watcher = Silent()) -> Path:
    """The folder of the grown model; grown now if nobody did before."""
    if not (flow.home / "config.json").is_file():
        place = flow.home.with_name(f"tmp.{uuid4().hex[:8]}")
        grow(flow, watcher).save_pretrained(place)
        shutil.rmtree(flow.home, ignore_errors=True)
        place.rename(flow.home)
    return flow.home


def grow(flow: ShapesFlow, watcher: Watcher = Silent()) -> SmallFlow:
    """Teach a model the velocity from noise to drawings. Lipman et al., 2023, arXiv:2210.02747."""
    seed_torch(flow.seed, "grow")
    rng = generator(flow.seed, "drawings")
    model = SmallFlow(WORDS, SIZE, flow.width)
    kept = {name: x.detach().clone() for name, x in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), flow.lr)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, flow.lr, flow.steps, pct_start=0.05)
    for step in range(flow.steps):
        loss = _loss(model, [_captioned(rng, flow.blank) for _ in range(flow.batch)])
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


def draw(scene: Scene, rng: random.Random) -> Float[Tensor, "3 S S"]:
    """One of the images that a scene describes, -1 to 1; no two things touch."""
    while True:  # a place that leaves no room for the others is given up
        taken = torch.zeros(SIZE + 2, SIZE + 2).bool()
        image = -torch.ones(3, SIZE, SIZE)
        if all(
            _put(image, taken, things, within, rng)
            for things, within in zip(scene.things, HALVES[scene.side], strict=False)
            for _ in range(things.count)
        ):
            return image


def _put(
    image: Tensor,
    taken: Tensor,
    things: Things,
    within: tuple[int, int, int, int],
    rng: random.Random,
) -> bool:
    """Add one thing where nothing is near; False where no try finds such a place."""
    left, top, right, bottom = within
    for _ in range(20):
        x, y = rng.randint(left, right - THING), rng.randint(top, bottom - THING)
        if not taken[y : y + THING + 2, x : x + THING + 2].any():
            taken[y + 1 : y + THING + 1, x + 1 : x + THING + 1] = True
            place = image[:, y : y + THING, x : x + THING]
            place[:, SHAPE[things.shape]] = 2 * PALETTE[things.colour][:, None] - 1
            return True
    return False


def _captioned(rng: random.Random, blank: float) -> tuple[str, Tensor]:
    caption = rng.choice(captions())
    image = draw(scene_of(caption), rng)
    return "" if rng.random() < blank else caption, image


def _loss(model: SmallFlow, captioned: list[tuple[str, Tensor]]) -> Tensor:
    """Mean square of what is wrong with the velocities at random times."""
    word = torch.tensor([model.words(caption) for caption, _ in captioned])
    image = torch.stack([image for _, image in captioned])
    noise, t = torch.randn_like(image), torch.randn(len(image)).sigmoid()
    at = torch.lerp(image, noise, t[:, None, None, None])
    return (model(at, t, word) - (noise - image)).square().mean()


@torch.no_grad()
def _follow(kept: dict[str, Tensor], model: SmallFlow, rate: float) -> None:
    for name, x in model.named_parameters():
        kept[name].lerp_(x, rate)
