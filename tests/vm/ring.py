"""A Python job with mpi4py: pickled objects and buffers, between neighbours and among all ranks."""

from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size

everybody = world.allgather({"rank": rank, "host": MPI.Get_processor_name()})
assert [one["rank"] for one in everybody] == list(range(size))

right, left = (rank + 1) % size, (rank - 1) % size
for step, count in enumerate((1, 100, 10_000)):
    mine, theirs = array("d", [rank + step] * count), array("d", [-1.0] * count)
    world.Sendrecv([mine, MPI.DOUBLE], right, step, [theirs, MPI.DOUBLE], left, step)
    assert set(theirs) == {left + step}

total = world.allreduce(rank + 1)
assert total == size * (size + 1) // 2
text = world.bcast("x" * 20_000 if rank == 0 else None)
assert text == "x" * 20_000
world.Barrier()
if rank == 0:
    print(len({one["host"] for one in everybody}), "hosts", flush=True)
    print("ok ring.py", flush=True)
