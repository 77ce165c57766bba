# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes, beside this file, library.safetensors by the format's own library: element (i) of a tensor is i * 3 % 251
(bools: i % 3 == 0; floats a quarter of it); and files by NumPy: of floats 0 to 76 as 7 x 11, rows.npy, and big_endian_columns.npy in the
other order of bytes and of elements; complex.npy has them as complex128, times 2j.

    python3 tests/io/sample/generate.py            # needs numpy, ml_dtypes and safetensors
"""
import pathlib

import ml_dtypes
import numpy
from safetensors.numpy import save_file

TYPES = {"half": "float16", "bfloat16": ml_dtypes.bfloat16, "float": "float32", "double": "float64",
         "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
         "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool"}
SHAPES = {"scalar": (), "line": (7,), "empty": (3, 0, 2), "block": (5, 3, 2)}

tensors = {}
for name, dtype in TYPES.items():
    for shape_name, shape in SHAPES.items():
        index = numpy.arange(int(numpy.prod(shape, dtype=int)))
        if name == "bool":
            values = index % 3 == 0
        elif name == "int8":
            values = index * 3 % 127
        else:
            values = index * 3 % 251
        if name in ("half", "bfloat16", "float", "double"):
            values = values * 0.25
        tensors[f"{name}.{shape_name}"] = values.astype(dtype).reshape(shape)
save_file(tensors, pathlib.Path(__file__).parent / "library.safetensors",
          metadata={"step": "1200", "say": 'a "quoted" text, \u00e4\u20ac\U0001f600\n'})

numbers = numpy.arange(77.0).reshape(7, 11)
for name, array in {"rows": numbers.astype("<f4"), "big_endian_columns": numpy.asfortranarray(numbers.astype(">f4")),
                    "complex": numbers.astype("complex128") * 2j}.items():
    numpy.save(pathlib.Path(__file__).parent / f"{name}.npy", array)
