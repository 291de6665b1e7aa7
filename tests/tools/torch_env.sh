#!/bin/bash
# torch_env.sh: makes the virtual environment with the newest PyTorch that the tests use, once per
# user. Prints its folder. torch_env.sh --where: only prints the folder, made or not.
#
# It is made beside its place and renamed when PyTorch has been imported in it, so an interrupted
# installation never counts; a lock keeps two runs apart. Debian's own python3-torch is the other
# version that is tested.
set -euo pipefail

readonly version=2.15.0
readonly python=/usr/bin/python3
# All that Gloo on the CPU needs where the system has the CUDA toolkit that this PyTorch was built
# for: 2 GB, not 5.
readonly smallest=("torch==$version" typing-extensions sympy mpmath numpy nvidia-nccl-cu13==2.30.7
  nvidia-cusparselt-cu13==0.8.1 nvidia-nvshmem-cu13==3.7.2 nvidia-cufile)

cache=${XDG_CACHE_HOME:-${HOME:-~}/.cache}/muster
place=$cache/torch-$version

if [[ ${1:-} == --where || -x $place/bin/python ]]; then
  echo "$place"
  exit
fi

mkdir -p -- "$cache"
exec {lock}>"$cache/torch-$version.lock"
if ! flock --nonblock "$lock"; then
  echo "torch_env.sh: waiting for another run that makes $place" >&2
  flock "$lock"
fi
if [[ -x $place/bin/python ]]; then  # The other run made it.
  echo "$place"
  exit
fi

making=$place.partial
rm -rf -- "$making" "$place"
trap 'rm -rf -- "$making"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

imports() {
  "$making/bin/python" -c 'import torch.distributed; assert torch.distributed.is_gloo_available()'
}

echo "torch_env.sh: installing PyTorch $version into $place" >&2
"$python" -m venv "$making"
pip=("$making/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install --no-deps "${smallest[@]}" >&2
if ! imports 2>/dev/null; then
  echo "torch_env.sh: no matching CUDA toolkit here: installing PyTorch's copies of it too" >&2
  "${pip[@]}" install "torch==$version" numpy >&2
  imports
fi

# Scripts name their interpreter by its full path: it is about to move.
grep -rlIF --null -- "$making" "$making/bin" "$making/pyvenv.cfg" |
  xargs -0 sed -i "s|$making|$place|g"
mv -- "$making" "$place"
trap - EXIT
echo "$place"
