#!/usr/bin/env bash
# A run on Slurm: a Ray cluster on the nodes of one allocation, then `csl run`.
#   sbatch --nodes=4 cluster/slurm.sh audit.yaml
# The run root must be on storage that all nodes reach. A requeued job continues with the rest.
#SBATCH --job-name=csl
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
#SBATCH --output=csl-%j.log
set -euo pipefail
config=${1:?"usage: sbatch cluster/slurm.sh CONFIG [csl options]"}

# A token of this job's own, so that other users of the nodes can't reach its cluster.
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_TOKEN

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address="$head:$((6379 + SLURM_JOB_ID % 10000))"

srun --nodes=1 --ntasks=1 --nodelist="$head" \
  ray start --head --node-ip-address="$head" --port="${address#*:}" --disable-usage-stats --block &
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  srun --nodes="$((SLURM_JOB_NUM_NODES - 1))" --ntasks="$((SLURM_JOB_NUM_NODES - 1))" \
    --exclude="$head" bash -c "
      until ray health-check --address $address; do sleep 2; done
      ray start --address $address --block" &
fi

export RAY_ADDRESS=$address
until ray health-check --address "$address"; do sleep 2; done
# Wait for every node, so that the stages see all GPUs from the start.
python - "$SLURM_JOB_NUM_NODES" <<'PYTHON'
import sys, time
import ray
ray.init(log_to_driver=False)
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[1]):
    time.sleep(2)
PYTHON
csl run "$config" "${@:2}"
