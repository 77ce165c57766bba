#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# run.sh PACKAGE.tgz RESULTS [PART...]: runs what pack.sh gathered on a machine with a GPU, from this checkout's root, and writes what it
# prints to RESULTS. Parts, in this order: machine cases mpi sanitizer bench peers steps; without any all of them. Each part has a limit of
# time, and those after one that fails are run. PEERS names whom to measure beside. The last lines are a summary.
set -u
package=$(mktemp -d)
tar -C "$package" -xzf "${1:?the package}" || exit
mkdir -p "${2:?the folder of the results}"
results=$(cd "$2" && pwd)
shift 2
[ $# -gt 0 ] || set -- machine cases mpi sanitizer bench peers steps

# CUDA's libraries: the toolkit's, else those that Python packages bring.
libraries=/usr/local/cuda/lib64
for folder in $(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2> /dev/null)/nvidia/*/lib; do
  [ ! -d "$folder" ] || libraries+=:$folder
done
export LD_LIBRARY_PATH=$package/lib:$libraries PATH=$package/bin:/usr/local/cuda/bin:$PATH
export OMP_NUM_THREADS=1 OMP_PROC_BIND=false HYDRA_LAUNCHER=fork
chmod +x "$package"/bin/*
folders=(tests/differential/sample)
[ ! -d "$package/cases" ] || folders+=("$package/cases")
summary=()

# part NAME SECONDS COMMAND...: runs it with a limit, and notes how it ended.
part() {
  local name=$1 limit=$2 began=$SECONDS status
  shift 2
  timeout -k 5 "$limit" "$@" > "$results/$name.txt" 2>&1
  status=$?
  summary+=("$(printf '%-28s %4d s  %s' "$name" $((SECONDS - began)) "$([ $status -eq 0 ] && echo passed || echo "FAILED ($status)")")")
  [ $status -eq 0 ] || tail -n 12 "$results/$name.txt" | cut -c1-400
}

for wanted in "$@"; do
  case $wanted in
    machine)
      part machine 30 bash -c 'nvidia-smi; nvcc --version | tail -n 2; lscpu | grep "Model name"; ldd "$0"' "$package/bin/differential_cases"
      ;;
    cases)
      for folder in "${folders[@]}"; do
        part "cases.$(basename "$folder").one" 90 differential_cases "$folder" --mesh 1 --tell 300
        part "cases.$(basename "$folder").threads" 120 differential_cases "$folder" --sparse --tell 300
      done
      ;;
    mpi)
      part device.1 90 device_cases
      for processes in 2 4; do
        part "device.$processes" 90 mpiexec -n $processes device_cases
        part "mpi.$processes" 90 mpiexec -n $processes differential_cases tests/differential/sample --mpi --sparse --tell 100
      done
      ;;
    sanitizer)
      part sanitizer.memory 120 compute-sanitizer --error-exitcode 9 differential_cases tests/differential/sample --mesh 1
      ;;
    bench) part bench 150 bench_device ;;
    peers)
      part peers 200 env -u LD_LIBRARY_PATH python3 benchmarks/device/peers.py "$results/bench.txt" --peers ${PEERS:-torch jax}
      cat "$results/peers.txt"
      ;;
    steps)
      [ ! -x "$package/bin/bench_transformer" ] || part transformer 60 bench_transformer
      [ ! -x "$package/bin/bench_mixture_of_experts" ] || part mixture 60 bench_mixture_of_experts
      part steps.peers 200 env -u LD_LIBRARY_PATH python3 benchmarks/device/peers.py --steps --peers ${PEERS:-torch jax}
      cat "$results"/{transformer,mixture,steps.peers}.txt
      ;;
    *) echo "run.sh: there is no part $wanted" >&2 ;;
  esac
done
printf '%s\n' "${summary[@]}" | tee "$results/summary.txt"
