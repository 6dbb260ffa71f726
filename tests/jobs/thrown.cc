// One rank throws an exception that nothing catches, while the others wait in MPI_Barrier. Argument: the rank.

#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && rank == std::atoi(argv[1])) {
        std::cout << "process " << getpid() << std::endl;
        throw std::runtime_error("too cold");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
