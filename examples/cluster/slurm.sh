#!/bin/bash
# A job of Slurm that is started again where it was when it is preempted or its time is over: sbatch slurm.sh
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=04:00:00
#SBATCH --output=train-%j.log
#SBATCH --open-mode=append
# Slurm may start the job again itself: after a preemption, a dead node, or `scontrol requeue`
#SBATCH --requeue
# the processes are asked to end two minutes before they are killed
#SBATCH --signal=TERM@120
# On GPUs, one for each process: #SBATCH --gpus-per-task=1

# where a job has been requeued again and again without a step, something else is wrong
if [ "${SLURM_RESTART_COUNT:-0}" -gt 50 ]; then
    echo "this job has been started 50 times" >&2
    exit 1
fi

# one process that fails ends the others; those that were asked to end have saved by then
srun --kill-on-bad-exit=1 python train.py checkpoints "$@"
code=$?
# 143: the processes were asked to end, and have saved
if [ "$code" -eq 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
