"""Packages that an installation requires, by extra, and their installed versions."""

from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement

EXTRAS = {
    "agents": "games of Gymnasium and MiniGrid",
    "arena": "games of TextArena",
    "gguf": "models in files of llama.cpp: --model model.gguf",
    "images": "pictures: image flow, vision-language models",
    "judges": "models behind an HTTP API that score answers",
    "mcp": "tools of MCP servers",
    "openenv": "environments of OpenEnv",
    "optimizers": "ScheduleFreeAdam",
    "plots": "curves and intervals as SVG",
    "proxy": "agents behind an API of OpenAI's form: ProxyEnv, grupo serve --openai",
    "quantization": "Nf4() weights under adapters (QLoRA), and Adam8bit",
    "ray": "environments and servers on a Ray cluster",
    "sql": "partial credit for SQL queries: SqlQuestions",
    "survey": "four families of tasks in recipes/real",
    "tasksets": "tasksets of verifiers 0.4, and the harnesses that play them",
    "tensorboard": "metrics for TensorBoard: --tensorboard",
    "trackio": "metrics for trackio: --trackio",
    "verifiers": "environments of verifiers 0.2",
    "vllm": "the client of a vLLM server, which has an environment of its own",
    "wandb": "metrics for Weights & Biases: --wandb",
}


@dataclass(frozen=True)
class InstalledPackage:
    """A required package, and what is installed.

    Args:
        requirement: The name and the allowed versions, such as `torch>=2.6`.
        version: The installed version; "" if there is none.
        is_allowed: True if this version is allowed.
    """

    requirement: str
    version: str
    is_allowed: bool


def required_packages(extra: str = "") -> list[InstalledPackage]:
    """The packages that an extra requires, or the package itself, with their installed versions.

    Args:
        extra: Name of an extra; "" for what every installation has.

    Raises:
        PackageNotFoundError: grupo was not installed, but its folder is on the path.
    """
    requirements = map(Requirement, metadata.requires("grupo") or ())
    return [_installed(r) for r in requirements if _belongs_to(r, extra)]


def _belongs_to(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    is_general = marker is None or marker.evaluate({"extra": ""})
    if not extra or marker is None:
        return not extra and is_general
    return not is_general and marker.evaluate({"extra": extra})


def _installed(requirement: Requirement) -> InstalledPackage:
    text = f"{requirement.name}{requirement.specifier}"
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return InstalledPackage(text, "", is_allowed=False)
    is_allowed = requirement.specifier.contains(version, prereleases=True)
    return InstalledPackage(text, version, is_allowed)
