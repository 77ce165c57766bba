# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the files of a Debian package, with Python's standard library alone.

    for name, data in members("dataset-fashion-mnist_0.0_all.deb"):      # "./usr/share/dataset-fashion-mnist/…", bytes
"""
import io
import tarfile


def members(path):
    """Yields the names and bytes of a package's files. Raises ValueError for a file that is none."""
    with open(path, "rb") as file:
        if file.read(8) != b"!<arch>\n":
            raise ValueError(f"{path} is no Debian package")
        while header := file.read(60):
            size = int(header[48:58])
            data = file.read(size + size % 2)[:size]
            if header.startswith(b"data.tar"):
                with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                    yield from ((one.name, archive.extractfile(one).read()) for one in archive if one.isfile())
