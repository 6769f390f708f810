"""The message for a word that is no command of `grupo`."""

from collections.abc import Collection

from grupo.util.errors import ConfigError, suggest

# words for which other programs have a command, and what to write instead
OTHER_WORDS = {
    "chat": "grupo ask RUN --chat",
    "config": "grupo train --dry-run > recipe.toml",
    "convert": "grupo export RUN FOLDER, or grupo migrate FILE for a configuration",
    "env": "grupo doctor --environment",
    "evaluate": "grupo eval RUN",
    "fit": "grupo train",
    "generate": 'grupo ask RUN "PROMPT"',
    "grpo": "grupo train",
    "help": "grupo --help",
    "init": "grupo train --dry-run > recipe.toml",
    "list": "grupo methods",
    "merge": "grupo export RUN FOLDER, which merges adapters",
    "plot": "grupo report RUN",
    "ppo": "grupo train --method ppo",
    "push": "grupo export RUN FOLDER --push-to-hub USER/MODEL",
    "run": "grupo train",
    "show": "grupo rollouts RUN, or grupo report RUN",
    "test": "grupo eval RUN",
    "version": "grupo --version",
}


def unknown_command(word: str, commands: Collection[str]) -> ConfigError:
    """The error for a word in the place of a command.

    Args:
        word: The word.
        commands: The commands that exist.

    >>> print(unknown_command("plot", ["report", "train"]))
    'plot' is no command. Write grupo report RUN. Allowed: report, train.
    """
    if word in OTHER_WORDS:
        hint = f"Write {OTHER_WORDS[word]}. {suggest('', commands)}"
    else:
        hint = suggest(word, commands)
    return ConfigError(f"{word!r} is no command. {hint}")
