"""One rank of the mode `python-ddp` or `python-nosync` of `tandem bench`.

Trains the bench's networks with Python's DistributedDataParallel, on as many
rows, threads and steps, in the turns that the bench's coordinator orders.
`tandem bench --strategy ddp,python-ddp` starts it, with torchrun's variables.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import time

os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler's notes of what it lacks

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

CLASSES, PIXELS = 10, 28 * 28
VOCABULARY, SEQUENCE, FEATURES, HEADS, HIDDEN = 1000, 32, 64, 4, 256
NUM_BATCHES, VERIFY_STEPS, VERIFY_ROWS = 4, 3, 6
COUNTED = ("aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


class ResidualStack(nn.Module):
    def __init__(self, num_layers, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(num_layers))

    def forward(self, value):
        share = 1 / len(self.layers)
        for layer in self.layers:
            value = torch.add(value, functional.relu(layer(value)), alpha=share)
        return value


class EncoderLayer(nn.Module):
    """As LibTorch computes it: attention by two products, norm behind."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(FEATURES, HEADS)
        self.linear1 = nn.Linear(FEATURES, HIDDEN)
        self.linear2 = nn.Linear(HIDDEN, FEATURES)
        self.norm1 = nn.LayerNorm(FEATURES)
        self.norm2 = nn.LayerNorm(FEATURES)

    def attend(self, value, mask):
        length, rows, _ = value.shape
        own = self.attention
        query, key, content = functional.linear(
            value, own.in_proj_weight, own.in_proj_bias
        ).chunk(3, -1)
        query, key, content = (
            part.contiguous().view(length, rows * HEADS, -1).transpose(0, 1)
            for part in (query / math.sqrt(FEATURES // HEADS), key, content)
        )
        weights = (torch.bmm(query, key.transpose(1, 2)) + mask).softmax(-1)
        found = torch.bmm(weights, content).transpose(0, 1).contiguous()
        weights.view(rows, HEADS, length, length).mean(1)
        return own.out_proj(found.view(length, rows, FEATURES))

    def forward(self, value, mask):
        value = self.norm1(value + self.attend(value, mask))
        return self.norm2(value + self.linear2(functional.relu(self.linear1(value))))


class TokenModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, FEATURES)
        self.positions = nn.Embedding(SEQUENCE, FEATURES)
        self.encoder = nn.ModuleList(EncoderLayer() for _ in range(2))
        self.scores = nn.Linear(FEATURES, VOCABULARY)
        mask = torch.full((SEQUENCE, SEQUENCE), -math.inf).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, tokens):
        value = (self.tokens(tokens) + self.positions.weight).transpose(0, 1)
        for layer in self.encoder:
            value = layer(value, self.mask)
        return self.scores(value.transpose(0, 1))


def make_net(workload):
    if workload == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(),
            nn.Linear(128, CLASSES),
        )  # fmt: skip
    if workload == "mlp":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(PIXELS, 256), nn.ReLU(), nn.Linear(256, CLASSES)
        )
    if workload == "mlp-wide":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(PIXELS, 4096), nn.ReLU(),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, CLASSES),
        )  # fmt: skip
    if workload == "many-small-tensors":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(PIXELS, 83), ResidualStack(1498, 83),
            nn.Linear(83, CLASSES),
        )  # fmt: skip
    if workload == "transformer":
        return TokenModel()
    raise SystemExit(f"python_ddp: unknown workload {workload}")


def make_batches(options, rows, rank, dtype):
    """This rank's rows of each batch."""
    batches = []
    for index in range(NUM_BATCHES):
        generator = torch.Generator().manual_seed(options.seed * NUM_BATCHES + index)
        total = rows * int(os.environ["WORLD_SIZE"])
        if options.workload == "transformer":
            tokens = torch.randint(
                VOCABULARY, (total, SEQUENCE + 1), generator=generator
            )
            data, target = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        else:
            data = torch.randn(total, 1, 28, 28, generator=generator, dtype=dtype)
            target = torch.randint(CLASSES, (total,), generator=generator)
        batches.append((data, target))
    own = slice(rank * rows, (rank + 1) * rows)
    return batches, [(data[own].clone(), target[own].clone()) for data, target in batches]


class Trainer:
    def __init__(self, options, dtype, wraps):
        torch.manual_seed(options.seed)
        self.net = make_net(options.workload).to(dtype)
        self.model = nn.parallel.DistributedDataParallel(self.net) if wraps else self.net
        self.sync = contextlib.nullcontext
        if wraps and options.no_sync:
            self.sync = self.model.no_sync
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)

    def step(self, batch):
        data, target = batch
        self.optimizer.zero_grad()
        with self.sync():
            scores = self.model(data)
            functional.cross_entropy(
                scores.flatten(0, -2), target.flatten()
            ).backward()
        self.optimizer.step()


def verify(options, rank):
    """Largest difference from one process on all rows, in double."""
    whole, own = make_batches(options, VERIFY_ROWS, rank, torch.double)
    candidate = Trainer(options, torch.double, wraps=True)
    reference = Trainer(options, torch.double, wraps=False)
    largest = 0.0
    for step in range(VERIFY_STEPS):
        candidate.step(own[step])
        reference.step((own if options.no_sync else whole)[step])
        for left, right in zip(
            candidate.net.parameters(), reference.net.parameters(), strict=True
        ):
            largest = max(largest, (left - right).abs().max().item())
    return {"max_abs_diff": largest, "first_mismatch": "a parameter"}


def count_flops(run):
    with torch.profiler.profile(with_flops=True, record_shapes=True) as profile:
        run()
    return sum(e.flops or 0 for e in profile.events() if e.name in COUNTED)


def peak_bytes():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", required=True)
    parser.add_argument("--no-sync", action="store_true")
    for name in ("batch", "seed", "threads", "mode-index", "coordinator-port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    store = dist.TCPStore("127.0.0.1", options.coordinator_port, is_master=False)
    mode = options.mode_index

    verification = verify(options, rank)
    rows = options.batch // world
    _, batches = make_batches(options, rows, rank, torch.float)
    trainer = Trainer(options, torch.float, wraps=True)
    steps_run = 1
    flops = count_flops(lambda: trainer.step(batches[0]))
    ready = {
        "verification": verification, "rows": rows, "flops": flops,
        "device": "cpu", "backend": "" if options.no_sync else "gloo",
    }  # fmt: skip
    store.set(f"{mode}/ready/{rank}", json.dumps(ready))
    turn = 0
    while True:
        key = f"{mode}/order/{turn}"
        store.wait([key], datetime.timedelta(days=7))
        order = json.loads(store.get(key))
        if order["untimed_steps"] + order["timed_steps"] == 0:
            break
        times = []
        for step in range(order["untimed_steps"] + order["timed_steps"]):
            begin = time.perf_counter()
            trainer.step(batches[steps_run % NUM_BATCHES])
            steps_run += 1
            if step >= order["untimed_steps"]:
                times.append((time.perf_counter() - begin) * 1e3)
        report = {
            "step_ms": times, "bytes_from_first_device": -1,
            "peak_bytes": [peak_bytes()], "steps_run": steps_run,
            "communication_ms": -1, "hidden_ms": -1,
            "counters": {
                "forwards": steps_run, "bytes_moved": 0, "collectives": 0, "copies": 0,
            },
        }  # fmt: skip
        store.set(f"{mode}/report/{turn}/{rank}", json.dumps(report))
        turn += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
