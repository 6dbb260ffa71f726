## Copyright (C) the ntbring authors. See LICENSE in the ntbring repository.

if BUILD_CH4_NETMOD_NTBRING

mpi_core_sources   += src/mpid/ch4/netmod/ntbring/func_table.c \
                      src/mpid/ch4/netmod/ntbring/globals.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_cancel.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_coll.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_comm.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_datatype.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_idle.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_init.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_lost.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_offer.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_op.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_part.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_progress.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_recv_chunk.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_rma.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_rma_far.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_schedule.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_shared.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_shared_blocks.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_spawn.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_tool.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_win.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_win_allocate.c \
                      src/mpid/ch4/netmod/ntbring/ntbring_win_lock.c

errnames_txt_files += src/mpid/ch4/netmod/ntbring/errnames.txt

external_ldflags   += @ntbring_ldflags@
external_libs      += @ntbring_libs@

endif
