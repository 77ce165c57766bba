# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways from PyTorch's layouts of parameters to Tessera's.

    query = WAYS["query"](tensor, 8)                # (512, 512), as torch.nn.Linear has it -> (512, 8, 1, 64)
"""
# From (outputs, inputs), as torch.nn.Linear has it. Heads are (groups, repeats), each group with one key and value.
WAYS = {
    "same": lambda x, heads: x,
    "linear": lambda x, heads: x.permute(1, 0),
    "query": lambda x, heads: x.permute(1, 0).reshape(x.shape[1], heads, 1, x.shape[0] // heads),
    "key": lambda x, heads: x.permute(1, 0).reshape(x.shape[1], heads, x.shape[0] // heads),
    "out": lambda x, heads: x.permute(1, 0).reshape(heads, 1, x.shape[1] // heads, x.shape[0]),
    "query bias": lambda x, heads: x.reshape(heads, 1, x.shape[0] // heads),
    "key bias": lambda x, heads: x.reshape(heads, x.shape[0] // heads),
}
