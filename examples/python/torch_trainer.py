# SPDX-License-Identifier: Apache-2.0
"""The trainer of the example torch-trainer: a PyTorch model, trained by the ranks that torchrun
started, whose parameters go to an inference job of JVMs after each step. The ranks average their
gradients by Windlass, too. Each sends its share of each parameter's rows, where the parameter lies.

usage: torchrun --standalone --nproc_per_node 2 torch_trainer.py FOLDER STEPS

Into FOLDER goes what torch's own cast to bf16 makes of each step, for the other side to compare.
"""

import os
import sys

import torch

import windlass

LIMIT = 60


def shares(parameter, rank, size):
    """This rank's rows, as a layout `Shard(0)` cuts them: a view."""
    rows = -(-parameter.shape[0] // size)
    return parameter.detach()[rank * rows:(rank + 1) * rows]


def write_cast(folder, step, model):
    """Torch's cast of all parameters, one after the other; whole once it has its name."""
    draft = os.path.join(folder, "draft")
    with open(draft, "wb") as file:
        for parameter in model.parameters():
            cast = parameter.detach().to(torch.bfloat16)
            file.write(cast.contiguous().view(torch.int16).numpy().tobytes())
    os.replace(draft, os.path.join(folder, "step-%d" % step))


def train(job, folder, steps):
    ranks = job.communicator
    torch.manual_seed(0)  # all begin alike
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.LayerNorm(96), torch.nn.Linear(96, 33))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = torch.Generator().manual_seed(1 + ranks.rank)  # each has its own
    layout = "%d:S0" % ranks.size
    with job.connect("policy", LIMIT) as link:
        builder = link.transfer_builder()
        for name, parameter in model.named_parameters():
            share = shares(parameter, ranks.rank, ranks.size)
            builder.add(name, list(parameter.shape), share, layout, wire="bf16")
        with builder.register(LIMIT) as transfer:
            for step in range(1, steps + 1):
                inputs = torch.randn(16, 64, generator=data)
                wanted = torch.randn(16, 33, generator=data)
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(inputs), wanted)
                loss.backward()
                for parameter in model.parameters():
                    ranks.all_reduce(parameter.grad, op="avg", deadline=LIMIT)
                optimizer.step()
                if ranks.rank == 0:
                    write_cast(folder, step, model)
                transfer.send(step, LIMIT)
                if ranks.rank == 0:
                    print("sent step %d, loss %.4f" % (step, loss.item()), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with windlass.Job.from_environment("trainer", deadline=LIMIT) as trainer:
        train(trainer, sys.argv[1], int(sys.argv[2]))
