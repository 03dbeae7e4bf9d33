#!/usr/bin/env python3
"""Prints what PyTorch's PowerSGD makes of known gradients over two ranks.

power_sgd_test.cpp holds the values. The batched hook is left out: it fails in
PyTorch 2.15.0, whose _orthogonalize refuses its matrices.
"""
import itertools
import os
import socket
import sys
import types

try:
    import numpy  # noqa: F401
except ImportError:
    # PowerSGDState wants only a source of seeds from it, replaced below.
    random = types.SimpleNamespace(RandomState=lambda seed: None)
    sys.modules["numpy"] = types.SimpleNamespace(random=random)

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

STEPS = 3
SEED = 5


class Bucket:
    def __init__(self, gradients):
        self.flat = torch.cat([gradient.flatten() for gradient in gradients])
        self.sizes = [gradient.shape for gradient in gradients]

    def buffer(self):
        return self.flat

    def gradients(self):
        parts = self.flat.split([size.numel() for size in self.sizes])
        return [part.view(size) for part, size in zip(parts, self.sizes)]

    def index(self):
        return 0

    def is_last(self):
        return True


class Seeds:
    """The seeds that Tandem takes: one more for each draw."""

    def __init__(self):
        self.numbers = itertools.count(SEED)

    def randint(self, limit):
        return next(self.numbers)


def gradients_of(rank, step):
    places = torch.arange(36.0, dtype=torch.float64)
    ramp = torch.sin(places * (rank + 2) + step)
    return [ramp[:32].view(8, 4), ramp[32:].clone()]


def run(rank, port, feedback, warm):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    state = power.PowerSGDState(
        process_group=None,
        matrix_approximation_rank=2,
        start_powerSGD_iter=2,
        min_compression_rate=1,
        use_error_feedback=feedback,
        warm_start=warm,
    )
    state.rng = Seeds()
    for step in range(2 + STEPS):
        bucket = Bucket(gradients_of(rank, step))
        result = power.powerSGD_hook(state, bucket).wait()
    if rank == 0:
        flat = result.tolist()
        values = ", ".join(f"{flat[place]:.9f}" for place in (0, 13, 31, 35))
        print(f"feedback {feedback} warm {warm}: {values}")
    dist.barrier()
    sys.stdout.flush()
    # The hook's callbacks may be what holds the group last, on its own thread,
    # which could not join itself.
    os._exit(0)


def main():
    for feedback, warm in itertools.product((False, True), repeat=2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        mp.spawn(run, (port, feedback, warm), nprocs=2)


if __name__ == "__main__":
    main()
