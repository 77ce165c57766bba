#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what a token takes that a decoder writes in PyTorch and, with --llama-python, in llama.cpp; with --bench in turns with
bench_decoding, on as many cores.

    python3 benchmarks/decoding_peers.py                                         # PyTorch alone
    python3 benchmarks/decoding_peers.py --bench build/bench/benchmarks --threads 2
    CMAKE_ARGS=-DLLAVA_BUILD=OFF llama/bin/python -m pip install llama-cpp-python==0.3.36 gguf==0.19.0    # built for this processor
    python3 benchmarks/decoding_peers.py --bench build/bench/benchmarks --llama-python llama/bin/python

The model is bench_decoding's: 6 layers, d 512, 8 heads, feed-forward 2048, vocabulary 8192, norms before the layers, learned
positions, single precision; texts begin with 32 tokens, which are read at once, and go on for 64, the likeliest each. PyTorch keeps keys
and values in tensors made before, and runs eagerly under inference_mode; with --threads 2 it has two threads, and Tessera two processes
of a core each. A step is a token of each text. With --bench all run one after the other, --rounds times; a time is the least of the
rounds' medians.

To llama.cpp the model is a GPT-2, whose file is written here: PyTorch's weights, zeros for the biases that a GPT-2 has beside them, gelu by
tanh. Its texts are sequences of one batch. By default it keeps keys and values in half precision, where it is fastest; beside that it
is measured with float ones, without flash attention, which would round them. Before it is timed, its scores of given texts, read in the
same steps, are compared with PyTorch's by that gelu: within 1e-3 of the largest, for its gelu is a table in half precision.
"""
import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from timed import median_ms
from written import write_json

LAYERS, EMBED, HEADS, HIDDEN, WORDS, BEGINS, WRITES = 6, 512, 8, 2048, 8192, 32, 64
TEXTS = (1, 8, 32)
PLACES = BEGINS + WRITES
WEIGHTS, GGUF = "weights.npz", "weights.gguf"


def measure(texts, write, seconds):
    """Prints what a token takes where `write` writes all."""
    print(f"{texts} texts: {median_ms(write, seconds, before=1, least=3) / WRITES:.4f} ms", flush=True)


def write_weights(model, folder):
    """Writes the model's weights, the ids of two texts, and the scores of what follows each place from BEGINS - 1 on, by a GPT-2's gelu and
    without the bias of scores, which a GPT-2 has not."""
    import numpy
    import torch
    for block in model.blocks:
        block.feed[1].approximate = "tanh"
    ids = torch.randint(0, WORDS, (2, PLACES))
    with torch.inference_mode():
        scores = model(ids)[:, BEGINS - 1:-1] - model.head.bias
    for block in model.blocks:
        block.feed[1].approximate = "none"
    numpy.savez(os.path.join(folder, WEIGHTS), ids=ids.numpy(), scores=scores.numpy(),
                **{name: x.numpy() for name, x in model.state_dict().items()})


def torch_steps(seconds, threads, folder):
    import torch
    from torch_layers import Transformer
    torch.set_num_threads(threads)
    torch.manual_seed(1)

    model = Transformer(WORDS, PLACES, EMBED, HEADS, HIDDEN, LAYERS)
    if folder:
        write_weights(model, folder)
    for texts in TEXTS:
        ids = torch.randint(0, WORDS, (texts, BEGINS))
        kept = model.kept(texts)

        def write():
            with torch.inference_mode():
                given, at = ids, 0
                for _ in range(WRITES):
                    following = model(given, kept, at).argmax(-1, keepdim=True)
                    at += given.shape[1]
                    given = following
                return following.tolist()
        measure(texts, write, seconds)


def write_gguf(path, tensors):
    """Writes the weights as llama.cpp reads a GPT-2's, without a tokenizer."""
    import gguf
    import numpy
    file = gguf.GGUFWriter(path, "gpt2")
    file.add_context_length(PLACES)
    file.add_embedding_length(EMBED)
    file.add_block_count(LAYERS)
    file.add_feed_forward_length(HIDDEN)
    file.add_head_count(HEADS)
    file.add_layer_norm_eps(1e-5)
    file.add_vocab_size(WORDS)
    file.add_tokenizer_model("no_vocab")
    file.add_file_type(gguf.LlamaFileType.ALL_F32)
    named = {"token_embd.weight": tensors["table.weight"], "position_embd.weight": tensors["places"], "output.weight": tensors["head.weight"]}
    pairs = {"output_norm": "norm"}
    for n in range(LAYERS):
        there, here = f"blk.{n}.", f"blocks.{n}."
        pairs |= {there + "attn_norm": here + "first", there + "attn_qkv": here + "joined", there + "attn_output": here + "out",
                  there + "ffn_norm": here + "second", there + "ffn_up": here + "feed.0", there + "ffn_down": here + "feed.2"}
    for there, here in pairs.items():
        weight = named[there + ".weight"] = tensors[here + ".weight"]
        named[there + ".bias"] = tensors[here + ".bias"] if here + ".bias" in tensors else numpy.zeros(len(weight), weight.dtype)
    for name, x in named.items():
        file.add_tensor(name, x)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


class LlamaTexts:
    """Texts that llama.cpp reads side by side, each a sequence of its batch."""

    def __init__(self, model, texts, threads, keeps_floats):
        import llama_cpp
        self.api, self.texts, self.at = llama_cpp, texts, 0
        asked = llama_cpp.llama_context_default_params()
        asked.n_ctx, asked.n_seq_max, asked.n_batch, asked.n_ubatch = texts * PLACES, texts, texts * BEGINS, texts * BEGINS
        asked.n_threads = asked.n_threads_batch = threads
        if keeps_floats:
            asked.type_k = asked.type_v = llama_cpp.GGML_TYPE_F32
            asked.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.context = llama_cpp.llama_init_from_model(model, asked)
        if not self.context:
            sys.exit(f"decoding_peers.py: llama.cpp has not made a context of {texts} texts")
        self.batch = llama_cpp.llama_batch_init(texts * BEGINS, 0, 1)

    def forget(self):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), False)
        self.at = 0

    def read(self, ids):
        """Returns the scores, (texts, words), after ids, (texts, new)."""
        import numpy
        batch, new = self.batch, ids.shape[1]
        batch.n_tokens = self.texts * new
        for i, (text, place) in enumerate(numpy.ndindex(self.texts, new)):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = int(ids[text, place]), self.at + place, 1, text
            batch.logits[i] = place == new - 1
        if self.api.llama_decode(self.context, batch) != 0:
            sys.exit("decoding_peers.py: llama_decode has failed")
        self.at += new
        return numpy.ctypeslib.as_array(self.api.llama_get_logits(self.context), (self.texts, WORDS))

    def free(self):
        self.api.llama_batch_free(self.batch)
        self.api.llama_free(self.context)


def llama_steps(seconds, threads, folder, keeps_floats=False):
    import llama_cpp
    import numpy
    tensors = dict(numpy.load(os.path.join(folder, WEIGHTS)))
    path = os.path.join(folder, GGUF)
    write_gguf(path, tensors)
    model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
    if not model:
        sys.exit(f"decoding_peers.py: llama.cpp has not read {path}")
    ids, scores = tensors["ids"], tensors["scores"]
    texts = LlamaTexts(model, len(ids), threads, keeps_floats)
    found = [texts.read(ids[:, :BEGINS]).copy()] + [texts.read(ids[:, at:at + 1]).copy() for at in range(BEGINS, PLACES - 1)]
    texts.free()
    far = abs(numpy.stack(found, 1) - scores).max() / abs(scores).max()
    if not far < 1e-3:
        sys.exit(f"decoding_peers.py: llama.cpp's scores are {far:.1e} of the largest from PyTorch's, and 1e-3 is allowed")
    print(f"scores within {far:.1e} of the largest from PyTorch's")
    for count in TEXTS:
        texts = LlamaTexts(model, count, threads, keeps_floats)
        begin = numpy.random.default_rng(1).integers(0, WORDS, (count, BEGINS))

        def write():
            texts.forget()
            given = begin
            for _ in range(WRITES):
                given = texts.read(given).argmax(-1)[:, None]
        measure(count, write, seconds)
        texts.free()


def output_of(command, environment):
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"decoding_peers.py: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


PEERS = {"PyTorch": torch_steps, "llama.cpp": llama_steps,
         "llama.cpp with float keys and values": functools.partial(llama_steps, keeps_floats=True)}


def run_peer(peer, python, asked, folder):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")} | {"OMP_NUM_THREADS": str(asked.threads)}
    said = output_of([python, __file__, "--alone", peer, "--folder", folder, "--threads", str(asked.threads), "--seconds",
                      str(asked.seconds)], kept)
    for texts, took in re.findall(r"(\d+) texts: ([\d.]+) ms", said):
        yield f"{texts} texts", peer, float(took)


def run_tessera(folder, mpiexec, threads):
    command = [*mpiexec.split(), "-n", str(threads), os.path.join(folder, "bench_decoding"), "--benchmark_filter=texts"]
    said = output_of(command, os.environ | {"OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"})
    found = re.findall(r"decoding/(\dx\d), (\d+) texts: ([\d.]+) ms", said)
    if not found:
        sys.exit(f"decoding_peers.py: {' '.join(command)} has printed no times:\n{said[-2000:]}")
    for mesh, texts, took in found:
        yield f"{texts} texts", f"Tessera on {mesh.replace('x', ' x ')}", float(took)


def main():
    take = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    take.add_argument("--alone", choices=PEERS, help="measure one peer in this process; llama.cpp wants a --folder")
    take.add_argument("--folder", default="", help="with --alone: where PyTorch writes the model's weights, and llama.cpp finds them")
    take.add_argument("--threads", type=int, default=1, help="cores: the peers' threads, Tessera's processes")
    take.add_argument("--seconds", type=float, default=4, help="for each row of a peer")
    take.add_argument("--bench", help="the folder of bench_decoding")
    take.add_argument("--llama-python", help="the Python that has llama_cpp and gguf; none: llama.cpp is left out")
    take.add_argument("--rounds", type=int, default=3, help="with --bench: how often all are run")
    take.add_argument("--mpiexec", default="mpiexec.mpich")
    take.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py")
    asked = take.parse_args()
    if asked.alone:
        return PEERS[asked.alone](asked.seconds, asked.threads, asked.folder)
    pythons = {peer: sys.executable if peer == "PyTorch" else asked.llama_python for peer in PEERS}
    least = {}  # {row: {way: ms}}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(asked.rounds if asked.bench else 1):
            runs = [run_tessera(asked.bench, asked.mpiexec, asked.threads)] if asked.bench else []
            for times in [*runs, *(run_peer(peer, python, asked, folder) for peer, python in pythons.items() if python)]:
                for row, way, took in times:
                    ways = least.setdefault(row, {})
                    ways[way] = min(took, ways.get(way, took))
    for row, ways in least.items():
        print(row)
        for way, took in ways.items():
            print(f"  {way}: {took:.3f} ms" + (f", {took / ways['PyTorch']:.2f} of PyTorch's" if way != "PyTorch" else ""))
    if asked.json:
        write_json(asked.json, {f"decoding/{row}, {asked.threads} core(s)": ways for row, ways in least.items()},
                   {"torch": sys.executable} | ({"llama-cpp-python": asked.llama_python} if asked.llama_python else {}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
