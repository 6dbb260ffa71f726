! Array sections as buffers with mpi_f08, against the same data in plain arrays: strided in one dimension or several, in
! part, backwards, of complex numbers and strings, and in collectives.
program sections
  use mpi_f08
  implicit none
  integer :: rank, ranks, left, right, i, j, k, wrong, everywhere, ierror
  integer :: a(20, 6), b(20, 6), want(20, 6), c(7, 5, 4), d(7, 5, 4), flat(400), all(64)
  complex(kind(1d0)) :: z(9, 4), y(9, 4)
  character(len=5) :: words(12), told(12)
  type(MPI_Status) :: status
  type(MPI_Request) :: requests(2)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  wrong = 0
  a = reshape([((cell(rank, i, j), i = 1, 20), j = 1, 6)], [20, 6])

  if (MPI_SUBARRAYS_SUPPORTED) then
    ! Every other row of all columns, sent, and received.
    flat = -1
    call MPI_Sendrecv(a(1:20:2, :), 60, MPI_INTEGER, right, 1, flat, 60, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status, ierror)
    call check('sent rows', flat(1:60), [((cell(left, i, j), i = 1, 20, 2), j = 1, 6)])
    b = -1
    want = -1
    want(1:20:2, :) = reshape(flat(1:60), [10, 6])
    call MPI_Sendrecv(flat, 60, MPI_INTEGER, rank, 2, b(1:20:2, :), 60, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, status, ierror)
    call check('received rows', reshape(b, [120]), reshape(want, [120]))
    ! Strided in both dimensions, backwards in one, nonblocking.
    flat = -1
    call MPI_Isend(a(19:3:-4, 1:5:2), 15, MPI_INTEGER, right, 3, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Irecv(flat, 15, MPI_INTEGER, left, 3, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call check('backwards', flat(1:15), [((cell(left, i, j), i = 19, 3, -4), j = 1, 5, 2)])
    ! Part of a section: two columns and a half.
    flat = -1
    call MPI_Sendrecv(a(1:20:2, :), 25, MPI_INTEGER, right, 4, flat, 60, MPI_INTEGER, left, 4, MPI_COMM_WORLD, status, ierror)
    call check('in part', flat(1:26), [((cell(left, i, j), i = 1, 20, 2), j = 1, 2), (cell(left, i, 3), i = 1, 9, 2), -1])
    ! Parts of rows, columns with gaps, one row.
    flat = -1
    call MPI_Sendrecv(a(4:9, 2:6:2), 18, MPI_INTEGER, right, 5, flat, 18, MPI_INTEGER, left, 5, MPI_COMM_WORLD, status, ierror)
    call check('a block', flat(1:18), [((cell(left, i, j), i = 4, 9), j = 2, 6, 2)])
    call MPI_Sendrecv(a(7, :), 6, MPI_INTEGER, right, 6, flat, 6, MPI_INTEGER, left, 6, MPI_COMM_WORLD, status, ierror)
    call check('a row', flat(1:6), [(cell(left, 7, j), j = 1, 6)])
    ! Three dimensions on both sides.
    c = reshape([(((rank * 1000 + i * 100 + j * 10 + k, i = 1, 7), j = 1, 5), k = 1, 4)], [7, 5, 4])
    d = -1
    call MPI_Sendrecv(c(1:7:3, 2:4, :), 36, MPI_INTEGER, right, 7, d(1:7:3, 2:4, :), 36, MPI_INTEGER, left, 7, &
                      MPI_COMM_WORLD, status, ierror)
    call check('three dimensions', reshape(d(1:7:3, 2:4, :), [36]), &
               [(((left * 1000 + i * 100 + j * 10 + k, i = 1, 7, 3), j = 2, 4), k = 1, 4)])
    if (count(d /= -1) /= 36) call complain('three dimensions: written beside the section')
    ! Complex numbers as twice as many reals, broadcast from a section to sections.
    y = reshape([((cmplx(i, j, kind(1d0)), i = 1, 9), j = 1, 4)], [9, 4])
    z = -1
    if (rank == 0) z = y
    call MPI_Bcast(z(1:9:2, :), 40, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
    if (any(z(1:9:2, :) /= y(1:9:2, :))) call complain('complex numbers')
    if (rank /= 0 .and. any(z(2:9:2, :) /= -1)) call complain('complex numbers: written beside the section')
    ! Strings as their characters.
    words = [(word(rank, i), i = 1, 12)]
    told = '-'
    call MPI_Sendrecv(words(1:12:2), 30, MPI_CHARACTER, right, 8, told(1:12:2), 30, MPI_CHARACTER, left, 8, &
                      MPI_COMM_WORLD, status, ierror)
    if (any(told(1:12:2) /= [(word(left, i), i = 1, 12, 2)])) call complain('strings')
    if (any(told(2:12:2) /= '-')) call complain('strings: written beside the section')
    ! Gathered to every other place.
    all = -1
    if (2 * 3 * ranks <= 64) then
      call MPI_Allgather(a(1:5:2, 1), 3, MPI_INTEGER, all(1:6 * ranks:2), 3, MPI_INTEGER, MPI_COMM_WORLD, ierror)
      call check('gathered', all(1:6 * ranks:2), [((cell(k, i, 1), i = 1, 5, 2), k = 0, ranks - 1)])
      if (any(all(2:64:2) /= -1)) call complain('gathered: written beside the section')
    end if
  end if

  call MPI_Allreduce(wrong, everywhere, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0) then
    if (everywhere == 0) then
      print '(a)', 'ok'
    else
      print '(i0, a)', everywhere, ' wrong sections'
    end if
  end if
  call MPI_Finalize(ierror)
  if (everywhere /= 0) error stop 1
contains
  pure integer function cell(of, row, column)
    integer, intent(in) :: of, row, column
    cell = of * 10000 + row * 10 + column
  end function

  character(len=5) function word(of, number)
    integer, intent(in) :: of, number
    write (word, '(a, i4.4)') 'w', of * 100 + number
  end function

  subroutine complain(what)
    character(*), intent(in) :: what
    wrong = wrong + 1
    print '(a, i0, 2a)', 'rank ', rank, ': ', what
  end subroutine

  subroutine check(what, got, expected)
    character(*), intent(in) :: what
    integer, intent(in) :: got(:), expected(:)
    if (any(got /= expected)) call complain(what)
  end subroutine
end program
