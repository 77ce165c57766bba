# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets archives of which the version and the bytes are pinned, by the clients of package indexes that a machine is set up with.

    wheel = Wheel("antiberty", "0.1.3", "30d910…", 96631471, "MIT")
    path = downloaded(wheel, "weights")             # weights/antiberty-0.1.3-py3-none-any.whl, once its SHA-256 is checked

An archive that is in the folder already is not downloaded again. Python's standard library is all that is needed.
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import threading


class Refused(Exception):
    """Why there is no archive, or nothing of use in it, and what to do."""


class Wheel:
    """A wheel, by pip: one that was built for every platform, whatever Python its program needs, since nothing of it is run."""
    client = "pip"

    def __init__(self, package, version, sha256, size, licence, tag="py3-none-any"):
        self.package, self.version, self.sha256, self.size, self.licence = package, version, sha256, size, licence
        self.file = f"{package.replace('-', '_')}-{version}-{tag}.whl"
        self.ways = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python"]

    def command(self, folder):
        return [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", *self.ways, "--dest", folder,
                f"{self.package}=={self.version}"]

    def by_hand(self, folder):
        return f"python3 -m pip download {' '.join(self.ways)} --dest {folder} {self.package}=={self.version}"


class DebianPackage:
    """A package of Debian for every architecture, by apt-get, which needs no rights for it."""
    client = "apt-get"

    def __init__(self, package, version, sha256, size, licence):
        self.package, self.version, self.sha256, self.size, self.licence = package, version, sha256, size, licence
        self.file = f"{package}_{version.replace(':', '%3a')}_all.deb"

    def command(self, folder):
        return ["apt-get", "download", "--quiet", f"{self.package}={self.version}"]

    def by_hand(self, folder):
        return f"cd {folder} && apt-get download {self.package}={self.version}"


def say(text, end="\n"):
    print(text, end=end, file=sys.stderr, flush=True)


def bar(part, text):
    """Draws how much is done, over the line that was drawn before."""
    say(f"\r  [{'=' * int(25 * part):25}] {int(100 * part):3} % {text}", end="")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def require_pinned(path, archive):
    found = sha256_of(path)
    if found != archive.sha256:
        raise Refused(f"{path} has the SHA-256 {found}, and {archive.package} {archive.version} is pinned as {archive.sha256}: the file "
                      "is damaged, or is another one; remove it, and run this again")


def show_growth(folder, size, ended):
    """Draws how much of a file is there, from the sizes of all files in a folder."""
    while not ended.wait(0.5):
        there = 0
        for root, _, files in os.walk(folder):
            for file in files:
                try:
                    there += os.path.getsize(os.path.join(root, file))
                except OSError:
                    pass  # renamed meanwhile
        bar(min(1.0, there / size), f"of {size / 2**20:.1f} MiB")


def reason(run):
    """Returns what a client that failed said at its end, without warnings."""
    lines = [line.strip() for line in run.stderr.splitlines() if line.strip() and not line.startswith(("W:", "WARNING:"))]
    return lines[-1] if lines else "it said nothing"


def downloaded(archive, folder):
    """Returns the path of the archive in the folder, after a download if it is not there. Raises Refused."""
    path = os.path.join(folder, archive.file)
    if os.path.exists(path):
        require_pinned(path, archive)
        return path
    say(f"{archive.package} {archive.version}, {archive.size / 2**20:.1f} MiB, licence {archive.licence}: {archive.by_hand(folder)}")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
        ended = threading.Event()
        growth = threading.Thread(target=show_growth, args=(part, archive.size, ended))
        # The clients keep unfinished files in the working folder or in their temporary one, which is where the bar looks.
        environment = dict(os.environ, TMPDIR=part, PIP_DISABLE_PIP_VERSION_CHECK="1", LC_ALL="C.UTF-8")
        if sys.stderr.isatty():
            growth.start()
        try:
            run = subprocess.run(archive.command(part), cwd=part, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 text=True, check=False)
            failed, said = run.returncode != 0, reason(run)
        except FileNotFoundError as fault:
            failed, said = True, str(fault)
        finally:
            ended.set()
            if growth.is_alive():
                growth.join()
                say("")
        made = os.path.join(part, archive.file)
        if failed or not os.path.exists(made):
            raise Refused(f"{archive.file} is not in {folder}, and {archive.client} did not download it ({said}).\n"
                          f"Without a network, get it elsewhere by\n"
                          f"  {archive.by_hand(folder)}\nand copy it into {folder}")
        require_pinned(made, archive)
        os.replace(made, path)
    return path
