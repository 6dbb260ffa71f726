! A program of a user: the sum of all ranks.

program hello
    use mpi_f08
    implicit none
    integer :: rank, ranks, total
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) print '(a,i0,a,i0,a)', 'sum ', total, ' of ', ranks, ' ranks'
    call MPI_Finalize()
end program
