# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the scripts that write small models of Hugging Face share: tests/nn/*_of_hugging_face/generate.py.

Importing it makes them compute in double throughout, in one thread, so that another run writes the same bits.
"""
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "examples", folder) for folder in ("protein_encoder", "support")]
import torch_file  # noqa: E402

torch.set_num_threads(1)
# Hugging Face turns, norms and weighs in float, whatever a model's type is; here in double.
torch.float = torch.float32 = torch.float64
torch.Tensor.float = torch.Tensor.double

KINDS = {torch.float64: "F64", torch.int32: "I32", torch.bool: "BOOL"}


def own(x):
    """Returns a torch tensor as the converter's."""
    x = x.detach().contiguous()
    return torch_file.Tensor(KINDS[x.dtype], x.numpy().tobytes(), 0, x.shape, torch_file.strides_of(x.shape))


def with_drawn_parameters(model, seed):
    """Returns the model in double, its parameters drawn, those of scales around 1."""
    model = model.to(torch.float64).eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, dtype=torch.float64) + (parameter.mean() > 0.5))
    return model


def write(script, name, tensors):
    """Writes NAME.safetensors beside a script."""
    folder = os.path.dirname(os.path.abspath(script))
    torch_file.write_safetensors(os.path.join(folder, name + ".safetensors"), tensors, {"written_by": "generate.py"})
