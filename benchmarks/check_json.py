#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_json.py FILE PROCESSES COMMAND…: runs a benchmark that writes FILE, and checks what it wrote."""
import json
import os
import subprocess
import sys

path, processes, command = sys.argv[1], sys.argv[2], sys.argv[3:]
if os.path.exists(path):
    os.remove(path)
subprocess.run(command, check=True)
with open(path) as file:
    result = json.load(file)
for key in ("commit", "compiler", "mpi", "kokkos", "blas", "processor", "command", "processes"):
    if not result["context"].get(key):
        sys.exit(f"check_json.py: the context in {path} has no {key}")
if result["context"]["processes"] != processes:
    sys.exit(f"check_json.py: {path} is of {result['context']['processes']} processes and was run on {processes}")
wanted = next(f.split("=", 1)[1] for f in command if f.startswith("--benchmark_filter="))
groups = {}
for row in result["benchmarks"]:
    case, _, way = row["name"].split("/manual_time")[0].split("/iterations:")[0].rpartition("/")
    groups.setdefault(case, {})[way] = row["real_time"]
if not groups:
    sys.exit(f"check_json.py: {path} has no benchmark that {wanted} asks for")
for case, ways in groups.items():
    if "tessera" not in ways or len(ways) < 2 or not all(t > 0 for t in ways.values()):
        sys.exit(f"check_json.py: {case} has {ways}; it needs a time of tessera and of a baseline")
print(f"{len(groups)} cases, each beside its baseline, in {path}")
