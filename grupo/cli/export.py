"""Export of a run's model: its folder, its model card, and the upload."""

from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi

from grupo.report.hub import check_upload, upload_model
from grupo.report.model_card import model_card
from grupo.training.resume.load_run import AVERAGED, load_checkpoint, policy_of
from grupo.training.resume.run_folder import RunFolder


@dataclass(frozen=True)
class Export:
    """The export of a checkpoint of a run to a new folder.

    Args:
        run: The folder of the run.
        folder: The new folder.
        checkpoint: "last", "best" or the number of a step.
        weights: "trained" or "ema".
        separate_adapters: Write LoRA adapters without merging them.
    """

    run: Path
    folder: Path
    checkpoint: str
    weights: str
    separate_adapters: bool

    def __call__(self, name: str) -> None:
        """Write the model and its card, which calls it `name`."""
        recipe = RunFolder.open(self.run).recipe
        saved = load_checkpoint(self.run, recipe, self.checkpoint)
        policy = policy_of(recipe, saved, self.weights)
        policy.export(self.folder, merge=not self.separate_adapters)
        card = model_card(recipe, saved, name, averaged=self.weights == AVERAGED)
        card.save(self.folder / "README.md")

    def and_upload(self, name: str, *, private: bool) -> str:
        """Write the model and upload it to the hub; returns a line with its address."""
        api = HfApi()
        check_upload(name, api)
        self(name)
        return f"The model is at {upload_model(self.folder, name, api, private=private)}"
