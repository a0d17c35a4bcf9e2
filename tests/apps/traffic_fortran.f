! SPDX-License-Identifier: Apache-2.0
! traffic_fortran: one message of 80 bytes from each rank to the next, and a broadcast of 40 from rank 0.
      program main
      include 'mpif.h'
      integer rank, ranks, error, i
      double precision mine(10), theirs(10)
      call MPI_INIT(error)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
      do i = 1, 10
        mine(i) = rank
      end do
      call MPI_SENDRECV(mine, 10, MPI_DOUBLE_PRECISION,
     &  mod(rank + 1, ranks), 0, theirs, 10, MPI_DOUBLE_PRECISION,
     &  mod(rank + ranks - 1, ranks), 0, MPI_COMM_WORLD,
     &  MPI_STATUS_IGNORE, error)
      call MPI_BCAST(mine, 5, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD,
     &  error)
      call MPI_FINALIZE(error)
      end
