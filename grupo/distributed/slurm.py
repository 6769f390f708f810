"""The text of a SLURM job: some machines train, and the others generate."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from grupo.util.errors import ConfigError

TIME = re.compile(r"(\d+-)?\d+(:\d\d){0,2}")  # days-hours:minutes:seconds
FIRST_SERVER_PORT = 8000
RENDEZVOUS_PORT = 29500
MAX_RESTARTS = 20
SERVE_PAUSE = 30  # seconds before `grupo serve` is started again


@dataclass(frozen=True)
class SlurmJob:
    """A run on several machines of one kind.

    Args:
        nodes: machines of the job.
        gpus: GPUs of each machine.
        servers: machines that generate; the others train.
        time: limit of the job.
        tensor_parallel: GPUs of each server.
    """

    nodes: int
    gpus: int
    servers: int
    time: str
    tensor_parallel: int = 1

    def __post_init__(self) -> None:
        for name in ("nodes", "gpus", "tensor_parallel"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: {getattr(self, name)}. Allowed: 1 or more.")
        if not 0 <= self.servers < self.nodes:
            raise ConfigError(
                f"servers: {self.servers}. Allowed: 0 to {self.nodes - 1}, because at least one of"
                f" {self.nodes} nodes trains."
            )
        if not TIME.fullmatch(self.time):
            raise ConfigError(f"time: {self.time!r}. Allowed: HOURS:MINUTES:SECONDS, or D-HH.")
        if self.gpus % self.tensor_parallel:
            raise ConfigError(
                f"tensor_parallel: {self.tensor_parallel}. Allowed: a divisor of {self.gpus} GPUs."
            )

    @property
    def num_training(self) -> int:
        """Machines that train."""
        return self.nodes - self.servers

    def script(self, model: str, dtype: str, train: Sequence[str], lora_rank: int = 0) -> str:
        """The job's script.

        Args:
            model: that the servers load.
            dtype: in which the servers compute.
            train: arguments of `grupo train`.
            lora_rank: of the adapters that the servers get; 0: none.
        """
        lora = f" --lora-rank {lora_rank}" if lora_rank else ""
        serve = f"grupo serve {shlex.quote(model)} --dtype {dtype}{lora}"
        return "\n".join([*self._header(), *self._serve(serve), *self._train(train), ""])

    def _header(self) -> list[str]:
        return [
            "#!/bin/bash",
            "#SBATCH --job-name=grupo",
            f"#SBATCH --nodes={self.nodes}",
            "#SBATCH --ntasks-per-node=1",
            f"#SBATCH --gpus-per-node={self.gpus}",
            f"#SBATCH --time={self.time}",
            "#SBATCH --requeue",
            "set -euo pipefail",
            'nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))',
        ]

    def _serve(self, command: str) -> list[str]:
        if not self.servers:
            return []
        num_servers = self.gpus // self.tensor_parallel
        last_port = FIRST_SERVER_PORT + num_servers - 1
        return [
            "",
            f"# {self.servers} nodes generate, with {num_servers} servers each; the first"
            f" {self.num_training} of the job train",
            "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT",
            "serve() {  # starts the servers of a node, also after an error",
            "  trap 'kill $! 2> /dev/null || true' EXIT",
            f"  for attempt in {{0..{MAX_RESTARTS}}}; do",
            f"    srun --overlap --nodes=1 --ntasks=1 --gpus-per-node={self.gpus}"
            ' --nodelist="$1" \\',
            f'      {command} --bind "$1" --port {FIRST_SERVER_PORT} \\',
            f"      --tensor-parallel {self.tensor_parallel} --data-parallel {num_servers} &",
            "    wait $! && return",
            f'    echo "grupo serve on $1 has ended with an error, $attempt of {MAX_RESTARTS}'
            ' restarts" >&2',
            f'    sleep "${{SERVE_PAUSE:-{SERVE_PAUSE}}}" &',
            "    wait $!",
            "  done",
            "}",
            "servers=()",
            f'for node in "${{nodes[@]:{self.num_training}}}"; do',
            '  serve "$node" &',
            f"  for port in {{{FIRST_SERVER_PORT}..{last_port}}}; do"
            ' servers+=("http://$node:$port"); done',
            "done",
            'export GRUPO_SERVERS="${servers[*]}"',
        ]

    def _train(self, train: Sequence[str]) -> list[str]:
        count = self.num_training
        return [
            "",
            "# torchrun starts all ranks again when one has failed; they resume the run",
            f'training=("${{nodes[@]:0:{count}}}")',
            f"srun --overlap --nodes={count} --ntasks={count} --gpus-per-node={self.gpus} \\",
            '  --nodelist="$(IFS=,; echo "${training[*]}")" \\',
            f"  torchrun --nnodes {count} --nproc-per-node {self.gpus}"
            f" --max-restarts {MAX_RESTARTS} \\",
            '  --rdzv-backend c10d --rdzv-id "$SLURM_JOB_ID"'
            f' --rdzv-endpoint "${{nodes[0]}}:{RENDEZVOUS_PORT}" \\',
            f"  -m -- grupo train {shlex.join(train)} --resume-if-exists",
        ]
