#!/bin/sh
# A launcher for `mpiexec -launcher ssh -launcher-exec`: starts each emulated host in PID, mount, IPC and user
# namespaces of its own. A host has its own process ids, /proc and /dev/shm, and cannot find, signal or read processes of
# another. Hosts have the network in common, through which mpiexec reaches them, and the directory DIR of
# NTBRING_DEVICE=emu:DIR.
#
# usage: namespaces.sh [options of ssh] HOST COMMAND...

while [ "${1#-}" != "$1" ]; do
    shift
done
shift

exec unshare --user --map-root-user --pid --fork --kill-child --mount-proc --mount --ipc sh -c '
    dir=${NTBRING_DEVICE#emu:}
    mount --bind "$dir" /mnt &&
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm &&
        mkdir -p "$dir" &&
        mount --move /mnt "$dir" &&
        exec sh -c "$1"
' sh "$*"
