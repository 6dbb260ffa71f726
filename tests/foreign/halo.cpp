// As halo.c, with MPI's C++ bindings.
#include <mpi.h>
#include <iostream>
#include <vector>

int main(int argc, char **argv)
{
    const int cells = 1000, steps = 300;

    MPI::Init(argc, argv);
    const MPI::Intracomm &world = MPI::COMM_WORLD;
    const int rank = world.Get_rank(), size = world.Get_size();
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    std::vector<long> field(cells + 2), next(cells + 2);
    for (int i = 1; i <= cells; i++)
        field[i] = long(rank) * cells + i - 1;
    for (int step = 0; step < steps; step++) {
        world.Sendrecv(&field[cells], 1, MPI::LONG, right, 0, &field[0], 1, MPI::LONG, left, 0);
        world.Sendrecv(&field[1], 1, MPI::LONG, left, 1, &field[cells + 1], 1, MPI::LONG, right, 1);
        for (int i = 1; i <= cells; i++)
            next[i] = step % 3 == 2 ? field[i + 1] : field[i - 1];
        field.swap(next);
    }
    const long total = long(size) * cells;
    int wrong = 0, all = 0;
    for (int i = 1; i <= cells; i++)
        wrong += field[i] != (long(rank) * cells + i - 1 - steps / 3 + total) % total;
    world.Reduce(&wrong, &all, 1, MPI::INT, MPI::SUM, 0);
    if (rank == 0)
        std::cout << (all ? "wrong" : "ok") << std::endl;
    MPI::Finalize();
    return 0;
}
