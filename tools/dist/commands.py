"""Commands of a new user, in a folder outside of the repository.

They need what a package may lack: its data, C sources, recipes and pages. An untrained model of the
quickstart's kind takes the place of the toy model, so that each takes seconds.
"""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Timer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from programs import run, stage, variables

TRL_SCRIPT = "GRPOTrainer(model='owner/model', args=GRPOConfig(num_generations=4, max_steps=9))\n"
UNTRAINED_MODEL = """
from pathlib import Path
from grupo.toy.quickstart import TOY_MODEL
TOY_MODEL.save_untrained(Path("untrained"))
template = "{% for message in messages %}{{ message.content }}{% endfor %}"
Path("untrained", "chat_template.jinja").write_text(template)  # the server needs one
"""
SMALL = (
    *("--policy.model", "untrained", "--prompts-per-step", "2", "--method.sampler.group-size", "4"),
    *("--policy.max-new-tokens", "16", "--evaluation.attempts", "1", "--eval-tasks", "4"),
)
DAPO = (
    "recipes/sums/dapo.py:RECIPE",
    "--method",
    "dapo(group_size=4, max_length=16, overlong_buffer=4, max_resample_rounds=1)",
    *("--method.updates.minibatches", "2"),  # of the two groups of a step
)
METHODS = ("--method", "grpo", "--method", "dr_grpo(max_length=16)")
TRAIN = ("train", "--steps", "2", *SMALL, "--run", "runs/sums")
COMMANDS = (
    ("--version",),
    ("doctor", "--environment"),
    ("recipes", "sums"),
    ("papers", "--kind", "policy"),
    ("methods", "dr_grpo"),
    ("migrate", "grpo.py"),
    TRAIN,
    ("report", "runs/sums", "--out", "sums.html"),
    ("doctor", "runs/sums"),
    ("check", "runs/sums"),
    ("eval", "runs/sums", "--count", "2", "--attempts", "1"),
    ("ask", "runs/sums", "1 + 2", "--max-new-tokens", "4"),
    ("export", "runs/sums", "model"),
    ("train", *DAPO, "--steps", "1", *SMALL, "--run", "runs/dapo"),
    ("compare", *METHODS, "--budget", "steps=2", "--seeds", "2", "--out", "compared", *SMALL),
)
# with the sdist's files, which are those of the wheel
AGAIN = (("--version",), ("doctor", "--environment"), ("recipes", "sums"), TRAIN)
RESULTS = ("sums.html", "model/model.safetensors", "compared/report.md")
SERVER_SECONDS = 600.0  # a loaded machine needs minutes to import torch


def write_files(programs: Path, folder: Path) -> None:
    """Import all modules, and write the files that the commands read."""
    folder.mkdir()
    (folder / "grpo.py").write_text(TRL_SCRIPT)
    shutil.copy(Path(__file__).with_name("import_all.py"), folder)
    with stage("  import all modules"):
        print(run(programs / "python", "import_all.py", folder=folder), end="")
    run(programs / "python", "-c", UNTRAINED_MODEL, folder=folder)


def try_commands(programs: Path, folder: Path, commands: Iterable[Sequence[str]]) -> None:
    """Run commands of grupo; exits if one fails or a result is missing."""
    shutil.rmtree(folder / "runs", ignore_errors=True)
    for arguments in commands:
        with stage(f"  grupo {' '.join(arguments)}"):
            output = run(programs / "grupo", *arguments, folder=folder)
        if arguments == ("doctor", "--environment"):
            lines = output.splitlines()
            wrong = [x for x in lines if x.startswith("problem") or "not compiled" in x]
            if wrong:
                sys.exit("\n".join(wrong))
    for result in RESULTS:
        if not (folder / result).stat().st_size:
            sys.exit(f"{result} is empty")


def try_server(programs: Path, folder: Path) -> None:
    """Serve the run to clients of OpenAI, and request an answer; exits if there is none."""
    command = ("serve", "runs/sums", "--openai", "--port", "18000", "--max-new-tokens", "4")
    with (
        stage(f"  grupo {' '.join(command)}"),
        subprocess.Popen(
            [programs / "grupo", *command],
            cwd=folder,
            env=variables(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as server,
    ):
        assert server.stdout
        lines: list[str] = []
        end = Timer(SERVER_SECONDS, server.kill)
        end.start()
        try:
            for line in server.stdout:
                lines.append(line)
                if line.startswith("export "):
                    break
            else:
                sys.exit(f"{''.join(lines)[-4000:]}grupo serve --openai ended, or took too long")
            print(f"  {_answer(lines[-1])}")
        finally:
            end.cancel()
            server.terminate()


def _answer(exports: str) -> str:
    """The kind of an answer of the server; exits if it is refused.

    Args:
        exports: The line with the environment variables of clients that the server prints.
    """
    given = dict(word.split("=", 1) for word in shlex.split(exports)[1:])
    url = f"{given['OPENAI_BASE_URL']}/chat/completions"
    body = {"model": "any", "messages": [{"role": "user", "content": "1 + 2"}], "max_tokens": 4}
    headers = {"Content-Type": "application/json"}
    headers["Authorization"] = f"Bearer {given['OPENAI_API_KEY']}"
    request = Request(url, json.dumps(body).encode(), headers)
    try:
        with urlopen(request, timeout=SERVER_SECONDS) as response:
            return json.loads(response.read())["object"]
    except HTTPError as error:
        sys.exit(f"{url}: {error}: {error.read().decode()}")
