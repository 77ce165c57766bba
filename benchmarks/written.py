# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what a script has measured, times as Google Benchmark writes them or rows of any facts, for cmake/docs/figures.py."""
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys


def said_by(*command, folder=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    return done.stdout.strip() if done.returncode == 0 else ""


def version(peer, python):
    return f"{peer} {said_by(python, '-c', f'from importlib.metadata import version; print(version({peer!r}))')}"


def command():
    """Returns the command as it was given, without folders and the file that it writes."""
    words = [os.path.basename(word) if os.path.sep in word else word for word in sys.argv[1:]]
    if "--json" in words:
        at = words.index("--json")
        del words[at : at + 2]
    return shlex.join(["python3", os.path.relpath(os.path.abspath(sys.argv[0]), pathlib.Path(__file__).resolve().parent.parent), *words])


def origin(peers=(), context=None):
    """Returns when, where, of which commit and by which command. `peers`: packages that this Python has, or {package: the Python that has
    it}. `context`: what a benchmark has said of itself."""
    processor = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), flags=re.M)
    facts = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
             "commit": said_by("git", "describe", "--always", "--dirty", folder=pathlib.Path(__file__).parent),
             "processor": processor[1] if processor else "unknown", "num_cpus": os.cpu_count(), "load_avg": os.getloadavg()} | (context or {})
    pythons = peers if isinstance(peers, dict) else dict.fromkeys(peers, sys.executable)
    return facts | {"command": command()} | ({"peers": ", ".join(version(*peer) for peer in pythons.items())} if pythons else {})


def write_json(path, times, peers, context=None, counted=None):
    """`times`: {case: {way: milliseconds}}, Tessera's ways begin with its name. `counted`: {case: {fact: number}}, what else stands in
    its row."""
    rows = [{"name": f"{case}/{way.replace('Tessera', 'tessera')}", "real_time": took, "time_unit": "ms"} | (counted or {}).get(case, {})
            for case, ways in times.items() for way, took in ways.items()]
    with open(path, "w") as file:
        json.dump({"context": origin(peers, context), "benchmarks": rows}, file, indent=1)


def write_rows(path, rows, context=None):
    """`rows`: [{column: text or number}], which figures.py shows as they are."""
    with open(path, "w") as file:
        json.dump({"context": origin(context=context), "rows": rows}, file, indent=1)
