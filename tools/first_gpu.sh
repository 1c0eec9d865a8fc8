#!/bin/sh
# What to run on the first GPU, in this order: CUDA tests, the rehearsal, the bench, what a step is, one paper.
#
#     tools/first_gpu.sh [FOLDER] [PAPER]          (default: docs/measured/first_gpu, pens)
#
# From the folder that holds the Snakefile, in the environment that runs it.  What is done is not done again: run it
# again after an interruption, or after mending what failed.  A step that fails is said, and the next one goes on.  In
# FOLDER there is then the log of each step, the machine in about.txt.
set -u
folder=${1:-docs/measured/first_gpu}
paper=${2:-pens}
scale=gpu
failed=0
mkdir -p "$folder" || exit 2

{
    date -u +%Y-%m-%d
    git rev-parse --short HEAD 2>/dev/null
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
    python -c "import torch; print('torch', torch.__version__, 'CUDA', torch.version.cuda)"
} >"$folder/about.txt" 2>&1

step() { # its name, then its command
    name=$1
    shift
    if [ -e "$folder/$name.done" ]; then
        echo "$name: done"
        return
    fi
    echo "$name: $*"
    began=$(date +%s)
    if "$@" >"$folder/$name.log" 2>&1; then
        echo "$(($(date +%s) - began)) s" >"$folder/$name.done"
    else
        failed=$((failed + 1))
        echo "$name: failed, see $folder/$name.log"
    fi
}

step cuda_tests python -m pytest -q -m cuda tests/cuda
step rehearsal snakemake --keep-going --resources gpu=1 --config scale=$scale rehearse=true -- all
step bench python bench/bench.py
# Table 3's smallest training to the letter, an hour and a half on an H200; its labels take 100,000 calls of Concorde.
step what_is_a_step snakemake --resources gpu=1 --config scale=paper papers='[scaling]' -- \
    work/paper/runs/scaling/small01M_6x128/model.safetensors
step "$paper" snakemake --resources gpu=1 --config scale=$scale papers="[$paper]" -- all
step kept neuroute keep --scale $scale

echo "$failed of 6 steps failed; $folder has logs and about.txt; tables are in docs/measured/$scale"
[ "$failed" -eq 0 ]
