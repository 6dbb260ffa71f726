! As halo.c. MPI_FROM says where MPI comes from: 1 mpif.h, 2 the module mpi, 3 the module mpi_f08.
program halo
#if MPI_FROM == 3
  use mpi_f08
#elif MPI_FROM == 2
  use mpi
#endif
  implicit none
#if MPI_FROM == 1
  include 'mpif.h'
#endif
  integer, parameter :: cells = 1000, steps = 300
  integer :: rank, ranks, left, right, step, i, wrong, everywhere, total, ierror
  integer :: field(0:cells + 1), next(0:cells + 1)
#if MPI_FROM == 3
  type(MPI_Status) :: status
#else
  integer :: status(MPI_STATUS_SIZE)
#endif

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  total = ranks * cells
  field(1:cells) = [(rank * cells + i - 1, i = 1, cells)]
  do step = 0, steps - 1
    call MPI_Sendrecv(field(cells), 1, MPI_INTEGER, right, 0, field(0), 1, MPI_INTEGER, left, 0, &
                      MPI_COMM_WORLD, status, ierror)
    call MPI_Sendrecv(field(1), 1, MPI_INTEGER, left, 1, field(cells + 1), 1, MPI_INTEGER, right, 1, &
                      MPI_COMM_WORLD, status, ierror)
    if (mod(step, 3) == 2) then
      next(1:cells) = field(2:cells + 1)
    else
      next(1:cells) = field(0:cells - 1)
    end if
    field(1:cells) = next(1:cells)
  end do
  wrong = count(field(1:cells) /= [(mod(rank * cells + i - 1 - steps / 3 + total, total), i = 1, cells)])
  call MPI_Reduce(wrong, everywhere, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  if (rank == 0) then
    if (everywhere == 0) then
      print '(a)', 'ok'
    else
      print *, everywhere, 'cells are wrong'
    end if
  end if
  call MPI_Finalize(ierror)
end program halo
